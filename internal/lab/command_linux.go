package lab

import (
	"fmt"
	"os"
)

// childMark in the environment marks what a lab has started.
const childMark = "BRAGG_LAB_CHILD"

// Started reports whether a program with these arguments was started by a lab, as a part of it. For people Verb is none.
func Started(arguments []string) bool {
	return len(arguments) > 0 && arguments[0] == Verb && os.Getenv(childMark) != ""
}

// Main is the program behind Verb and returns its exit code. Its output goes to a log of the lab.
func Main(arguments []string) int {
	if len(arguments) > 0 && arguments[0] != roleChassis && os.Getpid() != 1 {
		fmt.Fprintf(os.Stderr, "%s %q: it must run as PID 1 of a namespace\n", Verb, arguments)
		return 1
	}
	var err error
	switch {
	case len(arguments) == 2 && arguments[0] == roleKeeper:
		err = runKeeper(arguments[1])
	case len(arguments) == 3 && arguments[0] == roleHost:
		err = runHost(arguments[1], arguments[2])
	case len(arguments) > 3 && arguments[0] == roleChassis:
		err = runChassis(arguments[1], arguments[2], arguments[3:], os.Stdout)
	default:
		err = fmt.Errorf("%s %q: no such role", Verb, arguments)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
