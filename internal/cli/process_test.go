package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/cli"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/scenario"
)

// runAsBragg in the environment makes the test binary behave as the program itself, for tests that kill it.
const runAsBragg = "BRAGG_TEST_RUN_AS_BRAGG"

// agentsWithoutRing in the environment refuses io_uring to agents only, as VMs may that run under another kernel.
const agentsWithoutRing = "BRAGG_TEST_AGENTS_WITHOUT_IO_URING"

// leasesOfTest in the environment keeps the leases of tests apart that run at the same time.
const leasesOfTest = "BRAGG_TEST_LEASES"

// TestMain lets the test binary stand in for bragg, as a whole or where bragg starts itself again with a hidden verb.
func TestMain(m *testing.M) {
	if scenario.IsChild() {
		os.Exit(scenario.ChildMain(os.Stdin, os.Stdout))
	}
	hidden := len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__")
	if hidden && os.Getenv(agentsWithoutRing) != "" {
		if err := os.Setenv("BRAGG_IO_URING", "off"); err != nil {
			panic(err)
		}
	}
	if os.Getenv(runAsBragg) != "" || hidden {
		p := console.New("bragg")
		p.Leases = os.Getenv(leasesOfTest)
		os.Exit(cli.Main(context.Background(), p))
	}
	time.Local = time.UTC // what is printed must not depend on where the tests run
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // most tests here wait for load that runs for seconds
		panic(err)
	}
	os.Exit(m.Run())
}

// hangGuard ends what should have ended long before.
const hangGuard = 10 * time.Minute

// bragg is one process of the program.
type bragg struct {
	*exec.Cmd
	out output
}

// output may be read while a process writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the process has written text or has ended.
func (b *bragg) await(text string) {
	for deadline := time.Now().Add(hangGuard); time.Now().Before(deadline) && !b.ended(); time.Sleep(time.Millisecond) {
		if strings.Contains(b.out.String(), text) {
			return
		}
	}
}

func startBragg(t *testing.T, change func(*exec.Cmd), args ...string) *bragg {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangGuard)
	t.Cleanup(cancel)
	b := &bragg{Cmd: exec.CommandContext(ctx, self, args...)}
	b.Env = append(os.Environ(), runAsBragg+"=1", leasesOfTest+"="+t.Name())
	b.Stdout, b.Stderr = &b.out, &b.out
	if change != nil {
		change(b.Cmd)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	return b
}

// exitCode waits for the end; -1 is the end by a signal.
func (b *bragg) exitCode(t *testing.T) int {
	t.Helper()
	err := b.Wait()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("wait for bragg: %v\n%s", err, b.out.String())
	}
	return b.ProcessState.ExitCode()
}

// ended reports whether the process has ended and waits for its exit code to be read.
func (b *bragg) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.Process.Pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// mustRun runs the program and wants an exit code.
func mustRun(t *testing.T, want int, args ...string) string {
	t.Helper()
	b := startBragg(t, nil, args...)
	if code := b.exitCode(t); code != want {
		t.Fatalf("bragg %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, b.out.String())
	}
	return b.out.String()
}

// inProcess runs one command inside the test's process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = cli.Main(t.Context(), console.Process{
		Arguments: args, Getenv: os.Getenv, Directory: ".", Executable: self,
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Leases: t.Name(),
	})
	return code, out.String(), errs.String()
}
