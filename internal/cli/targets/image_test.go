package targets

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
)

// The agent of an image is looked for where all agents are, by the processors of its kernel.
func TestAgentOfAnImage(t *testing.T) {
	beside, named := t.TempDir(), t.TempDir()
	env := map[string]string{}
	p := &console.Process{Executable: filepath.Join(beside, "bragg"), Getenv: func(name string) string { return env[name] }}
	for _, path := range []string{filepath.Join(beside, "bragg-agent"), filepath.Join(named, "bragg-agent-linux-riscv64")} {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := func(architecture, path string) {
		t.Helper()
		got, err := guestAgent(p, architecture)
		if got != path {
			t.Errorf("the agent for %s is %q, want %q", architecture, got, path)
		}
		var told *diag.Error
		if path == "" && (!errors.As(err, &told) || told.Code != "no-agent" || told.Hint == "") {
			t.Errorf("without an agent for %s: %v", architecture, err)
		}
	}
	if runtime.GOOS == "linux" {
		want(runtime.GOARCH, filepath.Join(beside, "bragg-agent"))
	}
	want("riscv64", "")
	env["BRAGG_AGENT_DIR"] = named
	want("riscv64", filepath.Join(named, "bragg-agent-linux-riscv64"))
	want(runtime.GOARCH, "")
}
