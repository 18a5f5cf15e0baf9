package testreq

import (
	"flag"
	"strconv"
)

// Waiting lets n parallel tests of a package run at the same time, unless -parallel says otherwise. It is for TestMain of a package
// whose parallel tests mostly wait: the default is the number of processors, so that on two of them they would wait two by two.
func Waiting(n int) {
	flag.Parse()
	const name = "test.parallel"
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == name })
	if said {
		return
	}
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		panic(err) // n is not positive
	}
}
