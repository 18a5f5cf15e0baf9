package sshlink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/textio"
)

// far is the script at work, without ssh between.
type far struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *textio.LineReader
	temp string
}

func startRemote(t *testing.T, path string, command ...string) *far {
	t.Helper()
	return startRemoteIn(t, t.TempDir(), path, command...)
}

// startRemoteIn starts the script with a temporary folder of the caller.
func startRemoteIn(t *testing.T, temp, path string, command ...string) *far {
	t.Helper()
	r := &far{Cmd: exec.Command(command[0], command[1:]...), temp: temp}
	r.Env = []string{"TMPDIR=" + r.temp, "HOME=" + t.TempDir(), "PATH=" + path}
	in, err := r.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.in, r.out = in, textio.NewLineReader(out, 1<<20)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Kill() })
	return r
}

func (r *far) empty(t *testing.T) {
	t.Helper()
	var left []os.DirEntry
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		var err error
		if left, err = os.ReadDir(r.temp); err == nil && len(left) == 0 {
			return
		}
	}
	t.Errorf("left %v", left)
}

// testVerb makes the test's program the one at the other end.
const testVerb = "__link"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == testVerb {
		if len(os.Args) > 2 && os.Args[2] == Check {
			return
		}
		executable, err := os.Executable()
		if err == nil {
			err = RemoveOwn(executable, os.Args[2:])
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("at your service")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// ownProgram is the test's program as a remote one.
func ownProgram(t *testing.T) *Remote {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build, err := ReadBuild(self)
	if err != nil {
		t.Fatal(err)
	}
	return &Remote{Program: "bragg-test", Verb: testVerb, Find: func(platform string) (*Build, error) {
		if platform != runtime.GOOS+"/"+runtime.GOARCH {
			return nil, errors.New("wrong platform " + platform)
		}
		return build, nil
	}}
}

// toolsOf makes a folder with programs of the script, those of busybox where it is named.
func toolsOf(t *testing.T, without string, busybox string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sha256sum", "cut", "uname", "mktemp", "head", "gzip", "chmod", "rm", "mkdir", "mv", "rmdir"} {
		path, err := exec.LookPath(name)
		if name == without || err != nil {
			continue
		}
		if busybox != "" {
			path = busybox
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Whatever the login shell, and with the programs of coreutils or busybox, the program arrives, runs, and leaves nothing.
func TestScriptInShells(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the test's program often")
	}
	remote := ownProgram(t)
	script := strings.TrimSuffix(strings.TrimPrefix(remote.command(), "exec /bin/sh -c '"), "'")
	busybox, _ := exec.LookPath("busybox")
	type attempt struct {
		name, path string
		command    []string
	}
	attempts := []attempt{
		{"without gzip", toolsOf(t, "gzip", ""), []string{"/bin/sh", "-c", remote.command()}},
		{"noise", toolsOf(t, "", ""), []string{"/bin/sh", "-c", "echo Welcome; echo; echo {}; " + remote.command()}},
	}
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "fish", "tcsh", "mksh"} {
		if path, err := exec.LookPath(shell); err == nil {
			attempts = append(attempts, attempt{shell, toolsOf(t, "", ""), []string{path, "-c", remote.command()}})
			attempts = append(attempts, attempt{"script in " + shell, toolsOf(t, "", ""), []string{path, "-c", script}})
		}
	}
	if busybox != "" {
		attempts = append(attempts, attempt{"busybox", toolsOf(t, "", busybox), []string{busybox, "sh", "-c", script}})
	}
	for _, a := range attempts {
		if strings.HasPrefix(a.name, "script in ") && (strings.Contains(a.name, "fish") || strings.Contains(a.name, "tcsh")) {
			continue // not POSIX shells: they only pass the script on
		}
		t.Run(a.name, func(t *testing.T) {
			r := startRemote(t, a.path, a.command...)
			if err := bootstrap(r.in, r.out, remote); err != nil {
				t.Fatal(err)
			}
			line, err := r.out.Next()
			if err != nil || string(line) != "at your service" {
				t.Fatalf("%q, %v", line, err)
			}
			r.empty(t) // while it runs
			if err := r.in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Error(err)
			}
		})
	}
}

// On some hosts the temporary folder is a link to another one.
func TestTemporaryFolderIsLink(t *testing.T) {
	t.Parallel()
	remote := ownProgram(t)
	link := filepath.Join(t.TempDir(), "tmp")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	r := startRemoteIn(t, link, os.Getenv("PATH"), "/bin/sh", "-c", remote.command())
	if err := bootstrap(r.in, r.out, remote); err != nil {
		t.Fatal(err)
	}
	if line, err := r.out.Next(); err != nil || string(line) != "at your service" {
		t.Errorf("%q, %v", line, err)
	}
	r.empty(t)
	if err := r.in.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Wait(); err != nil {
		t.Error(err)
	}
}

// A connection that breaks at any moment leaves nothing.
func TestScriptIsCutShort(t *testing.T) {
	remote := ownProgram(t)
	p, err := remote.Find(runtime.GOOS + "/" + runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	text := p.packed()
	whole := fmt.Sprintf("%s\n\n\n%d\n%s", p.sum, len(text), text)
	for _, length := range []int{0, 10, 64, 65, 66, 67, 70, 80, 1000, len(whole) / 2, len(whole) - 20} {
		r := startRemote(t, os.Getenv("PATH"), "/bin/sh", "-c", remote.command())
		_, err := io.WriteString(r.in, whole[:length])
		if err = errors.Join(err, r.in.Close()); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := r.out.Next()
			if err != nil {
				break
			}
			if strings.Contains(string(line), "runs") {
				t.Errorf("%d of %d bytes run", length, len(whole))
			}
		}
		_ = r.Wait()
		r.empty(t)
	}
}
