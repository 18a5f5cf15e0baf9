package command_test

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/lab/command"
)

// TestScripts runs whole commands inside the test's process: `bragg-lab …`, or `exits CODE bragg-lab …`.
func TestScripts(t *testing.T) {
	run := func(ts *testscript.TestScript, want int, args []string) {
		var stdout, stderr bytes.Buffer
		code := command.Main(t.Context(), console.Process{
			Arguments: args, Getenv: ts.Getenv, Directory: ts.MkAbs("."), Executable: "/nowhere",
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		})
		_, _ = ts.Stdout().Write(stdout.Bytes())
		_, _ = ts.Stderr().Write(stderr.Bytes())
		if code != want {
			ts.Fatalf("bragg-lab %s: exit code %d, want %d", strings.Join(args, " "), code, want)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"bragg-lab": func(ts *testscript.TestScript, _ bool, args []string) { run(ts, 0, args) },
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				run(ts, want, args[2:])
			},
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			return nil
		},
	})
}
