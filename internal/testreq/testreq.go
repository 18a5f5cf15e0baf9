// Package testreq lets a test that needs a real part (a program, root, a device) say so.
//
// On a developer's machine such a test skips with its reason. With BRAGG_TEST_REQUIRE=all, as CI sets it, the same
// test fails, so that a skip can never hide there.
package testreq

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Skip ends the test as skipped with its reason, or as failed when everything is required.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("BRAGG_TEST_REQUIRE") == "all" {
		t.Fatalf("required here: %s", reason)
	}
	t.Skip(reason)
}

// SoakOnly begins the reason of a test that only the soak runs.
const SoakOnly = "soak only: "

// Soak skips a test that takes too long for every run, or needs a program that users install themselves. One of the parts of "make soak"
// sets its variable, whose value Soak returns. Unlike a missing prerequisite, such a skip does not fail where everything is required.
func Soak(t testing.TB, variable, why string) (value string) {
	t.Helper()
	value = os.Getenv(variable)
	if value == "" || testing.Short() {
		t.Skip(SoakOnly + why + " (" + variable + ")")
	}
	return value
}

// StatisticsVariable is set by the part of the soak that runs simulations with all their rounds.
const StatisticsVariable = "BRAGG_SOAK_STATISTICS"

// Rounds runs a simulation with few rounds in every run, and with many in the soak: few must tell a method that is broken from one that works,
// many must show that its error rates are kept.
func Rounds(t *testing.T, few, many int, simulate func(t *testing.T, rounds int)) {
	t.Helper()
	for _, rounds := range []int{few, many} {
		t.Run(fmt.Sprintf("%d rounds", rounds), func(t *testing.T) {
			if rounds == many {
				Soak(t, StatisticsVariable, "the same simulation with more rounds")
			}
			simulate(t, rounds)
		})
	}
}

// Program returns the path of a program of PATH and skips where it is missing.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(t, name+" is not installed")
	}
	return path
}

// Root skips where the test does not run as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
}

// RepositoryRoot returns the folder that holds go.mod.
func RepositoryRoot(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("find the source of package testreq")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Corpus returns a folder of the public corpus beside a checkout ("xray", "fio"), and skips without it.
func Corpus(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(RepositoryRoot(t), "..", "shared", "corpus", name)
	if _, err := os.Stat(dir); err != nil {
		Skip(t, "the corpus of public scenarios and job files is not beside this checkout: "+dir)
	}
	return dir
}

// Kubernetes returns the path of the program that "make deps-kube" builds: control plane, kubelet and kubectl of Kubernetes, by their
// names as the first argument. It skips where the program is missing.
func Kubernetes(t testing.TB) string {
	t.Helper()
	out, err := exec.Command(Program(t, "make"), "-s", "--no-print-directory", "-C", RepositoryRoot(t), "kube-program").Output()
	if err != nil {
		t.Fatalf("make kube-program: %v", err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		Skip(t, "Kubernetes is not built: make deps-kube builds "+path)
	}
	return path
}
