package evaluate

// OneByOne returns the input of an evaluation that reads every interval by itself.
func OneByOne(in Input) Input {
	in.oneByOne = true
	return in
}
