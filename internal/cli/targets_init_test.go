package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
)

// TestTargetsInitAsks answers the prompts of a terminal.
func TestTargetsInitAsks(t *testing.T) {
	dir := t.TempDir()
	answer := func(file, answers string, flags ...string) (code int, text, asked string) {
		t.Helper()
		var out, faults bytes.Buffer
		code = cli.Main(context.Background(), console.Process{
			Arguments: append([]string{"targets", "init", file, "--no-check"}, flags...), Directory: dir, Terminal: true,
			Getenv: func(string) string { return "" }, Stdin: strings.NewReader(answers), Stdout: &out, Stderr: &faults,
		})
		written, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return code, string(written), faults.String()
	}
	code, text, asked := answer("hosts.yml", "\nroot@10.0.0.11 root@10.0.0.12:2222\n\n")
	for _, want := range []string{"provider: ssh\n", `- id: "10.0.0.11"`, `address: "root@10.0.0.12:2222"`, `pool: "/var/tmp"`, "node_power: false"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	if code != 0 || !strings.Contains(asked, "Provider: ") || !strings.Contains(asked, "[/var/tmp]") {
		t.Errorf("exit code %d, asked %q", code, asked)
	}
	code, text, _ = answer("rack.yml", "libvirt\n\nroot@h\nnvme\ndebian-12.qcow2\n")
	for _, want := range []string{`endpoint: "qemu+ssh://root@h/system"`, `pool: "nvme"`, `"ubuntu1604": "debian-12.qcow2"`} {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("exit code %d; the file lacks %q:\n%s", code, want, text)
		}
	}
	if code, text, _ := answer("here.yml", "", "--provider", "local"); code != 0 || !strings.Contains(text, "nodes: 4\n") {
		t.Errorf("this machine needs no answer: exit code %d, %q", code, text)
	}
	if code, text, faults := answer("ended.yml", "ssh\n"); code != 64 || text != "" || !strings.Contains(faults, "no answer to: Hosts") {
		t.Errorf("without an answer: exit code %d, %q, %q", code, text, faults)
	}
}
