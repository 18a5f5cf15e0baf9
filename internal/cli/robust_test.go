package cli_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/testreq"
)

// busyArguments run the busy scenario with a folder of runs.
func busyArguments(runs string, more ...string) []string {
	return append([]string{
		"run", busyScenario, "--rehearse", "2s", "--rehearse-size", "32MiB", "--max-full", "100", "--runs", runs,
	}, more...)
}

// endlessArguments run the busy scenario for longer than any test waits, for tests that end it.
func endlessArguments(runs string) []string {
	return []string{"run", busyScenario, "--set", "runtime_secs=1000", "--max-full", "100", "--runs", runs}
}

// awaitEvent waits until the only run in the folder has recorded an event that matches, and returns its folder.
func awaitEvent(t *testing.T, program *bragg, runs string, matches func(interval.Event) bool) string {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); time.Now().Before(deadline) && !program.ended(); time.Sleep(10 * time.Millisecond) {
		all, err := result.List(runs)
		if err != nil || len(all) == 0 {
			continue
		}
		b, err := result.Open(all[0].Dir)
		if err != nil {
			continue
		}
		for e, err := range b.Events() {
			if err == nil && matches(e) {
				b.Close()
				return all[0].Dir
			}
		}
		b.Close()
	}
	t.Fatalf("the event never came; exit code %d\n%s", program.exitCode(t), program.out.String())
	return ""
}

func loadStarted(e interval.Event) bool {
	return e.Kind == interval.EventWorkloadStart && e.Phase == "run"
}

func TestSecondRunIsRefused(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	first := startBragg(t, nil, endlessArguments(runs)...)
	dir := awaitEvent(t, first, runs, loadStarted)
	said := mustRun(t, 75, busyArguments(runs)...)
	if !strings.Contains(said, filepath.Base(dir)) || !strings.Contains(said, "in use by run") {
		t.Errorf("the refusal does not name the run: %s", said)
	}
	if said := mustRun(t, 75, "clean", "--runs", runs); !strings.Contains(said, "skipped") {
		t.Errorf("clean beside a run: %s", said)
	}
	if said := mustRun(t, 77, "runs", "rm", "last", "--runs", runs); !strings.Contains(said, "is active") {
		t.Errorf("rm of a run that goes on: %s", said)
	}
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := first.exitCode(t); code != 130 {
		t.Errorf("the first run ended with %d\n%s", code, first.out.String())
	}
	checkNothingLeft(t, runs, "")
}

// Local runs of two folders run side by side, and both say so.
func TestTwoRunsOnOneMachine(t *testing.T) {
	t.Parallel()
	shared := func(other string) func(interval.Event) bool {
		return func(e interval.Event) bool {
			return e.Kind == interval.EventShared && strings.Contains(e.Subject, other)
		}
	}
	one, two := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "runs")
	first := startBragg(t, nil, endlessArguments(one)...)
	dir := awaitEvent(t, first, one, loadStarted)
	second := startBragg(t, nil, endlessArguments(two)...)
	other := awaitEvent(t, second, two, shared(filepath.Base(dir)))
	awaitEvent(t, first, one, shared(filepath.Base(other)))
	for i, b := range []*bragg{first, second} {
		if err := b.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := b.exitCode(t); code != 130 {
			t.Errorf("run %d ended with %d\n%s", i+1, code, b.out.String())
		}
		if said := b.out.String(); !strings.Contains(said, "used the same machine") {
			t.Errorf("run %d does not say that the machine was shared:\n%s", i+1, said)
		}
	}
	checkNothingLeft(t, one, "")
	checkNothingLeft(t, two, "")
}

// A program that was stopped says so: what is missing meanwhile is not an outage of the target.
func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	b := startBragg(t, nil, endlessArguments(runs)...)
	awaitEvent(t, b, runs, loadStarted)
	if err := b.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if err := b.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, b, runs, func(e interval.Event) bool {
		return e.Kind == interval.EventPaused && e.SpanNanos > int64(4*time.Second)
	})
	if err := b.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := b.exitCode(t); code != 130 {
		t.Errorf("exit code %d\n%s", code, b.out.String())
	}
	if said := b.out.String(); !strings.Contains(said, "controller was paused for") {
		t.Errorf("the pause is not told:\n%s", said)
	}
	checkNothingLeft(t, runs, "")
}

func TestInterruptStopsUndoesAndReports(t *testing.T) {
	t.Parallel()
	for signals, want := range map[int]string{
		1: "stopping load, cleaning up, writing report",
		2: "cleanup skipped; to clean up later: bragg clean 2",
	} {
		t.Run(fmt.Sprint(signals), func(t *testing.T) {
			t.Parallel()
			runs := filepath.Join(t.TempDir(), "runs")
			arguments := endlessArguments(runs)
			if signals > 1 {
				arguments = outageArguments(runs, 2*console.RepeatAfter)
			}
			b := startBragg(t, nil, arguments...)
			dir := awaitEvent(t, b, runs, loadStarted)
			b.interrupt(t, "cleaning up, writing report")
			if signals > 1 {
				time.Sleep(console.RepeatAfter)
				b.interrupt(t, "cleanup skipped")
			}
			if code := b.exitCode(t); code != 130 {
				t.Errorf("exit code %d\n%s", code, b.out.String())
			}
			if !strings.Contains(b.out.String(), want) {
				t.Errorf("want %q in\n%s", want, b.out.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
				t.Error(err)
			}
			if signals > 1 {
				mustRun(t, 0, "clean", "--runs", runs)
			}
			checkNothingLeft(t, runs, b.out.String())
			s := summaryOf(t, dir)
			if s.Verdict != result.Undecided || s.Ended != result.EndedInterrupted {
				t.Errorf("verdict %s, ended %s: %s", s.Verdict, s.Ended, s.Reason)
			}
		})
	}
}

// interrupt sends what Ctrl-C sends, and waits for the answer.
func (b *bragg) interrupt(t *testing.T, answer string) {
	t.Helper()
	if err := b.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	b.await(answer)
}

func summaryOf(t *testing.T, dir string) result.Summary {
	t.Helper()
	b, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// smallDisk mounts an ext4 file system of its own, so that filling it affects no other test.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	testreq.Root(t)
	mkfs, mount, umount := testreq.Program(t, "mkfs.ext4"), testreq.Program(t, "mount"), testreq.Program(t, "umount")
	dir := t.TempDir()
	image, point := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(image, int64(megabytes)<<20), os.Mkdir(point, 0o755)); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(mkfs, "-q", "-m", "0", image).CombinedOutput(); err != nil {
		t.Fatalf("make a file system: %v\n%s", err, text)
	}
	if text, err := exec.Command(mount, "-o", "loop", image, point).CombinedOutput(); err != nil {
		testreq.Skip(t, fmt.Sprintf("mount a loop device: %v %s", err, text))
	}
	t.Cleanup(func() {
		if text, err := exec.Command(umount, "-l", point).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v\n%s", err, text)
		}
	})
	return point
}

// fill writes until the disk has only leave bytes left.
func fill(t *testing.T, dir string, leave int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 256<<10)
	for {
		free, _, err := session.Space(dir)
		if err != nil {
			t.Fatal(err)
		}
		if free <= leave {
			return
		}
		if _, err := f.Write(chunk[:min(int64(len(chunk)), free-leave)]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDiskThatFillsUpStopsTheRun(t *testing.T) {
	t.Parallel()
	for _, leave := range []int64{4 << 20, 0} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t, 640)
			runs := filepath.Join(disk, "runs")
			b := startBragg(t, nil, endlessArguments(runs)...)
			dir := awaitEvent(t, b, runs, loadStarted)
			fill(t, disk, leave)
			if code := b.exitCode(t); code != 3 {
				t.Fatalf("exit code %d\n%s", code, b.out.String())
			}
			s := summaryOf(t, dir)
			if s.Verdict != result.Undecided || s.Ended != result.EndedFailed {
				t.Errorf("verdict %s, ended %s: %s", s.Verdict, s.Ended, s.Reason)
			}
			if !strings.Contains(s.Reason, "free") && !strings.Contains(s.Reason, "no space") {
				t.Errorf("the reason does not name the space: %s", s.Reason)
			}
			checkNothingLeft(t, runs, b.out.String())
			reportSealed(t, runs)
		})
	}
}

func TestFullDiskIsRefused(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64)
	fill(t, disk, 64<<10)
	said := mustRun(t, 69, busyArguments(filepath.Join(disk, "runs"))...)
	if strings.Contains(said, "defect") || !strings.Contains(said, "space") {
		t.Errorf("the refusal: %s", said)
	}
	mustRun(t, 0, "clean", "--runs", filepath.Join(disk, "runs"))
	checkNothingLeft(t, filepath.Join(disk, "runs"), said)
}

// unprivileged is the user without rights.
const unprivileged = 65534

func TestRunWithoutRoot(t *testing.T) {
	t.Parallel()
	testreq.Root(t)
	dir, err := os.MkdirTemp("", "bragg-unprivileged-") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "bragg")
	copyFile(t, program, "/proc/self/exe", 0o755)
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "scenario"), os.DirFS(busyScenario)), os.Chmod(dir, 0o755), os.Chown(dir, unprivileged, unprivileged)); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", filepath.Join(dir, "scenario"), "--rehearse", "2s", "--rehearse-size", "32MiB", "--max-full", "100"}
	b := startBragg(t, func(c *exec.Cmd) {
		c.Path, c.Dir = program, dir
		c.Env = append(c.Env, "HOME="+dir, "XDG_STATE_HOME=")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}, args...)
	if code := b.exitCode(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, b.out.String())
	}
	runs := filepath.Join(dir, ".local", "state", "bragg", "runs")
	// This test is another user, who may not read journals that are not theirs: it takes the folder over to look.
	if err := filepath.WalkDir(runs, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 0, 0))
	}); err != nil {
		t.Fatal(err)
	}
	checkNothingLeft(t, runs, b.out.String())
	reportSealed(t, runs)
}

func copyFile(t *testing.T, to, from string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRunsFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := mustRun(t, 69, busyArguments(filepath.Join(file, "runs"))...)
	if strings.Contains(said, "defect") || !strings.Contains(said, "not a directory") {
		t.Errorf("the refusal: %s", said)
	}
}

// noReader is the standard output of a program whose reader is gone.
type noReader struct{}

func (noReader) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestRunWithoutReader: "bragg run oltp | head" runs to its end, and its exit code is that of the run.
func TestRunWithoutReader(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runs := t.TempDir()
	var said strings.Builder
	code := cli.Main(t.Context(), console.Process{
		Arguments: []string{"run", "oltp", "--target", "fake:1", "--rehearse", "1s", "--runs", runs}, Getenv: os.Getenv, Directory: ".",
		Executable: self, Stdin: strings.NewReader(""), Stdout: noReader{}, Stderr: &said, Leases: t.Name(),
	})
	all, err := result.List(runs)
	if err != nil || len(all) != 1 {
		t.Fatalf("runs %v, %v\n%s", all, err, said.String())
	}
	summary := summaryOf(t, all[0].Dir)
	if pass := summary.Verdict == result.Pass; pass != (code == 0) || code == diag.ExitUnavailable || strings.Contains(said.String(), "broken pipe") {
		t.Errorf("exit code %d of a run with verdict %s: %s", code, summary.Verdict, said.String())
	}
}

func TestRunWithoutIOURing(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	b := startBragg(t, func(c *exec.Cmd) { c.Env = append(c.Env, "BRAGG_IO_URING=off") }, busyArguments(runs)...)
	_ = b.exitCode(t) // many threads on few cores may leave the run undecided
	all, err := result.List(runs)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d runs, %v\n%s", len(all), err, b.out.String())
	}
	s := summaryOf(t, all[0].Dir)
	if s.Ended != result.EndedCompleted {
		t.Errorf("ended %s: %s", s.Ended, s.Reason)
	}
	for _, l := range s.Loads {
		if !strings.Contains(interval.EngineText(l.Engines), "io_uring refused") || l.Total.Operations == 0 {
			t.Errorf("%s: engine %q, %d operations", l.Workload, l.Engines, l.Total.Operations)
		}
	}
}
