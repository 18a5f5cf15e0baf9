package program_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// install makes a program that prints a version.
func install(t *testing.T, folder, name, version string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\necho '" + name + " (Some) " + version + "'\n"
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	install(t, filepath.Join(dir, "9.6", "bin"), "bench", "9.6.24")
	install(t, filepath.Join(dir, "15", "bin"), "bench", "15.2")
	install(t, filepath.Join(dir, "path"), "bench", "14.1")
	t.Setenv("PATH", filepath.Join(dir, "path")+":"+os.Getenv("PATH"))
	folders := filepath.Join(dir, "*", "bin")
	tools, err := program.Find(t.Context(), []load.Need{{Program: "bench", Oldest: "13"}}, folders)
	if err != nil || tools["bench"].Version != "15.2" || tools["bench"].Major() != 15 {
		t.Errorf("%+v, %v", tools, err)
	}
	packages := []load.Package{{Family: load.Debian, Name: "bench-deb"}, {Family: load.RedHat, Name: "bench-rpm"}, {Family: load.SUSE, Name: "bench-suse"}}
	_, err = program.Find(t.Context(), []load.Need{{Program: "bench", Oldest: "15.10", Packages: packages}, {Program: "no-such-bench", Packages: packages}}, folders)
	var user *diag.Error
	if !errors.As(err, &user) || user.Exit != diag.ExitUnavailable || !strings.Contains(user.Hint, "bench-") ||
		!strings.Contains(user.Message, "bench is version 15.2, want 15.10") || !strings.Contains(user.Message, "no no-such-bench") {
		t.Errorf("%v", err)
	}
}

// A program that is there and does not work is not called missing.
func TestFindBroken(t *testing.T) {
	dir := t.TempDir()
	script(t, filepath.Join(dir, "bench"), "echo no such library >&2; exit 127")
	script(t, filepath.Join(dir, "silent"), "exit 0")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_, err := program.Find(t.Context(), []load.Need{{Program: "bench"}, {Program: "silent"}})
	for _, want := range []string{"ask " + strconv.Quote(filepath.Join(dir, "bench")), "no such library", "ask " + strconv.Quote(filepath.Join(dir, "silent"))} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// What a program prints as its version, and what it starts for that, is bounded.
func TestVersionText(t *testing.T) {
	dir := t.TempDir()
	endless, holds := filepath.Join(dir, "endless"), filepath.Join(dir, "holds")
	script(t, endless, "exec yes 1.2.3")
	script(t, holds, "sleep 1000 & echo 1.2.3; exec sleep 1000")
	for _, path := range []string{endless, holds} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		if text, err := program.VersionText(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %.20q, %v", path, text, err)
		}
		runtime.ReadMemStats(&after)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s took %v", path, took)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s took %d bytes", path, grown)
		}
	}
}

func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	out, err := program.Command{Path: "/bin/sh", Args: []string{"-c", "echo said; pwd; echo $A"}, Env: []string{"A=b"}}.Run(t.Context())
	if err != nil || out != "said\n/\nb\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, err = program.Command{Path: "/bin/sh", Args: []string{"-c", "echo said; echo reason >&2; exit 3"}}.Run(t.Context())
	if err == nil || out != "said\n" || !strings.Contains(err.Error(), "reason") || !program.Failed(errors.Unwrap(err)) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := (program.Command{Path: "/bin/sleep", Args: []string{"1000"}}).Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := (program.Command{Path: "/no/such/program"}).Run(t.Context()); err == nil {
		t.Error("a program that does not exist was run")
	}
}

// A folder is reached by its descriptor where the path to it cannot be searched, and descendants end with a program that is alone.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	p, err := program.Command{Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & sleep 1000 & echo > " + program.Inherited(0) + "/begun; wait"},
		Files: []*os.File{folder}, Alone: true}.Start()
	if err != nil {
		t.Fatal(err)
	}
	hang := time.Now().Add(30 * time.Second)
	for {
		if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
			break
		}
		if time.Now().After(hang) {
			t.Fatal("the program did not begin")
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.Kill()
	if err := p.Wait(); !program.Failed(err) {
		t.Errorf("%v", err)
	}
	for len(users(dir)) > 0 {
		if time.Now().After(hang) {
			t.Fatalf("processes %v are left", users(dir))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// users lists other processes with an open descriptor of a path.
func users(path string) (list []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == path && !strings.HasPrefix(link, "/proc/self/") {
			if pid := strings.Split(link, "/")[2]; pid != self() {
				list = append(list, pid)
			}
		}
	}
	return list
}

func self() string {
	pid, _ := os.Readlink("/proc/self")
	return pid
}

func TestTranscript(t *testing.T) {
	tr := program.NewTranscript(20)
	for range 10 {
		_, _ = tr.Write([]byte("0123456789abc"))
	}
	text := tr.String()
	if len(text) > 60 || !strings.HasPrefix(text, "0123456789") || !strings.HasSuffix(text, "3456789abc") {
		t.Errorf("%q", text)
	}
	tr = program.NewTranscript(1000)
	_, _ = tr.Write(bytes.Repeat([]byte("x"), 300))
	if tr.String() != strings.Repeat("x", 300) {
		t.Error(tr.String())
	}
}

// What is not the program it is taken for may print without end, or leave processes that hold its output.
func TestStrangeVersions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for name, script := range map[string]string{"endless": "yes 1.0 | head -c 100000000", "holding": "sleep 1000 & echo 1.0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		tools, err := program.Find(t.Context(), []load.Need{{Program: name}})
		if err != nil || tools[name].Version != "1.0" {
			t.Errorf("%s: %+v, %v", name, tools, err)
		}
	}
}
