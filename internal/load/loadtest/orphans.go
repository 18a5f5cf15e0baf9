package loadtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// helperRuns is what a helper prints for each interval.
const helperRuns = "running"

// BeHelper runs a load in a process of its own, until Orphans kills it. It does not return.
func BeHelper(g load.Generator, w load.Workload) {
	in, err := g.Prepare(context.Background(), w)
	if err == nil {
		err = in.Run(context.Background(), load.SinkFunc(func(interval.Interval) { fmt.Println(helperRuns) }))
	}
	fmt.Println("ended", err)
	os.Exit(1)
}

// Orphans checks that programs of a load die with the process that runs it, as power off kills an agent. It starts this test binary
// again with more variables, whose TestMain calls BeHelper, waits for some intervals, calls during, kills the helper, and waits until
// no process is left.
func Orphans(t *testing.T, variables []string, intervals int, during func(), left func() []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variables...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range intervals {
		if !lines.Scan() || lines.Text() != helperRuns {
			t.Errorf("helper says %q", lines.Text())
			break
		}
	}
	during()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	hang := time.Now().Add(30 * time.Second)
	for len(left()) > 0 {
		if time.Now().After(hang) {
			t.Fatalf("processes %v outlive their parent", left())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Users lists other processes that are in a folder, or have it or a file of it open.
func Users(t testing.TB, folder string) (list []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.Stat(folder)
	if err != nil {
		return nil
	}
	folders, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range append(folders, files...) {
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		to, err := os.Readlink(link)
		at, _ := os.Stat(link) // a program with mounts of its own sees other names
		if err == nil && (strings.HasPrefix(to, folder) || os.SameFile(at, whole)) && !slices.Contains(list, pid) && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// KillUsers kills these processes.
func KillUsers(t testing.TB, folder string) {
	t.Helper()
	for _, pid := range Users(t, folder) {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
}
