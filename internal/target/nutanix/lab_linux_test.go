package nutanix

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/targettest/programtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// labProgram is bragg-lab prism as a person starts it.
type labProgram struct {
	cmd    *exec.Cmd
	target string // target file that it wrote
	errors bytes.Buffer
}

// startLab starts the emulator with its files in dir, and waits until it says how it is reached.
func startLab(t *testing.T, dir string) *labProgram {
	t.Helper()
	p := &labProgram{cmd: exec.Command(filepath.Join(programtest.Built(t, "bragg-agent", "bragg-lab"), "bragg-lab"), "prism", "--listen", "127.0.0.1:0", "--task-duration", "10ms")}
	p.cmd.Env = append(os.Environ(), "TMPDIR="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	p.cmd.Stderr = &p.errors
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if rest, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "--target"); ok {
			p.target = strings.TrimSpace(rest)
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			break
		}
	}
	if p.target == "" {
		_ = p.cmd.Wait()
		t.Fatalf("it wrote no target file: %s%s", &said, &p.errors)
	}
	return p
}

// The real emulator serves the real bragg. What is left of one that was killed is removed by the next, and one that is interrupted leaves nothing.
func TestLab(t *testing.T) {
	t.Parallel() // beside the contract, which waits most of the time
	testreq.Root(t)
	if testing.Short() {
		t.Skip("programs are built")
	}
	dir := t.TempDir()
	u := &user{bragg: filepath.Join(programtest.Built(t, "bragg", "bragg-agent"), "bragg"), state: filepath.Join(dir, "bragg")}
	folders := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "bragg-lab-vms-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := startLab(t, dir)
	keys := func() string { // that a target file needs
		text, err := os.ReadFile(first.target)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\nfingerprint: ")
		pin, _, _ := strings.Cut(rest, "\n")
		password, err := os.ReadFile(filepath.Join(filepath.Dir(first.target), "password"))
		if err != nil || pin == "" {
			t.Fatal(pin, err)
		}
		return pin + string(password)
	}
	before := keys()
	secret, err := os.ReadFile(filepath.Join(filepath.Dir(first.target), "password"))
	if err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"targets", "check", first.target}}
	if programtest.Soak() {
		for _, name := range []string{"four_corners", "node_failure"} {
			commands = append(commands, []string{
				"run", name, "--target", first.target, "--runs", filepath.Join(dir, "runs"), "--rehearse", "20s", "--rehearse-size", "16MiB", "--max-full", "99",
			})
		}
	}
	for _, args := range commands {
		cmd, out := u.command(t.Context(), args...)
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != diag.ExitPass && code != diag.ExitFailed {
			t.Errorf("bragg %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if strings.Contains(out.String(), strings.TrimSpace(string(secret))) {
			t.Errorf("bragg %s prints the password", args[0])
		}
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	left := folders()
	if len(left) != 1 {
		t.Fatalf("a killed emulator leaves %q", left)
	}
	second := startLab(t, dir)
	if keys() != before {
		t.Error("target files of the first emulator are not valid for the second")
	}
	if now := folders(); len(now) != 1 || now[0] == left[0] {
		t.Errorf("beside a new emulator there are %q, before it %q", now, left)
	}
	if err := second.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); second.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("interrupted: %v: %s", err, &second.errors)
	}
	if now := folders(); len(now) > 0 {
		t.Errorf("an interrupted emulator leaves %q", now)
	}
}
