package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
)

// TestScripts runs whole commands inside the test's process: `bragg …`, or `exits CODE bragg …` where the command is
// to fail with that code.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       updateScripts(),
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"bragg":   braggCommand,
			"exits":   exitsCommand,
			"makerun": makeRun,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return nil
		},
	})
}

func updateScripts() bool { return os.Getenv("BRAGG_UPDATE_SCRIPTS") != "" }

func braggCommand(ts *testscript.TestScript, neg bool, args []string) {
	code := runBragg(ts, args)
	if (code != 0) != neg {
		ts.Fatalf("bragg %s: exit code %d", strings.Join(args, " "), code)
	}
}

func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "bragg" {
		ts.Fatalf("usage: exits CODE bragg ARGUMENTS")
	}
	// "0|3" is either: whether the numbers of a run hold may depend on the machine.
	code := strconv.Itoa(runBragg(ts, args[2:]))
	if !slices.Contains(strings.Split(args[0], "|"), code) {
		ts.Fatalf("bragg %s: exit code %s, want %s", strings.Join(args[2:], " "), code, args[0])
	}
}

func runBragg(ts *testscript.TestScript, args []string) int {
	self, err := os.Executable()
	ts.Check(err)
	var stdout, stderr bytes.Buffer
	code := cli.Main(context.Background(), console.Process{
		Arguments: args, Getenv: ts.Getenv, Directory: ts.MkAbs("."), Executable: self,
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Leases: ts.MkAbs("."),
	})
	// The script's own stdout and stderr are what `stdout`, `stderr` and `cmp` look at.
	_, err = ts.Stdout().Write(stdout.Bytes())
	ts.Check(err)
	_, err = ts.Stderr().Write(stderr.Bytes())
	ts.Check(err)
	return code
}
