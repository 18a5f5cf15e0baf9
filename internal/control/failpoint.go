package control

// Failpoint is the hook by which a test makes a named place fail, wait, or kill the process. It is nil in real runs
// and then costs one comparison.
type Failpoint func(name string) error

// At is called wherever a run could be cut off. The names are those of Failpoints.
func (f Failpoint) At(name string) error {
	if f == nil {
		return nil
	}
	return f(name)
}
