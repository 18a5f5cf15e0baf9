package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
)

// Command is one program to run.
type Command struct {
	Path string
	Args []string
	Dir  string // where it starts; "": the root folder, which it cannot keep busy
	// Env is the whole environment; nil inherits that of this process.
	Env   []string
	Stdin io.Reader
	// Stdout and Stderr that are not files are written by goroutines that end with the process.
	Stdout, Stderr io.Writer
	// Files are inherited as descriptors 3, 4, …: see Inherited.
	Files []*os.File
	// Account runs the program as another user; nil: as the user of this process.
	Account *Account
	// Alone starts it in namespaces of its own for processes and shared memory, so that its descendants and their memory end with it
	// even if it is killed. Where the system does not allow namespaces, it runs without them.
	Alone bool
	// Mount is a folder that an Alone program of another account sees as MountPoint: programs that resolve the paths of their files need
	// one that their user may search.
	Mount string
	// Mounts is the mount namespace that has this folder; nil: that of this process.
	Mounts *os.File
}

// MountPoint is where a program sees its Mount. Other processes see their own there.
const MountPoint = "/mnt"

// firstInherited is the descriptor of the first of a command's Files.
const firstInherited = 3

// Inherited is the path by which the program reaches file number i of its Files. A folder is reached this way even if the
// program's user may not search the folders above it.
func Inherited(i int) string { return fmt.Sprintf("/proc/self/fd/%d", firstInherited+i) }

// outputGrace is how long output may still come after the end of a process, whose descendants may hold its pipe.
const outputGrace = 5 * time.Second

// ErrHeld is the end of a program without an error, whose output may be incomplete.
var ErrHeld = errors.New("it has ended, and a process that it started holds its output")

// Process is a started program.
type Process struct {
	command *exec.Cmd
	done    chan struct{}
	err     error // valid once done is closed
	effort  effort
}

// Start starts the program. It ends with this process, whatever ends that: the kernel kills it. It stays in the process group of
// this process, so that killing the group of an agent reaches it as well.
func (c Command) Start() (*Process, error) {
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// Linux kills the child when the thread that started it ends, so that this thread stays until then.
		onThread(c.Alone, func() { c.run(p, started) })
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// onThread runs a function on a thread that is locked for it, and returns after it. If it changes its mounts, that is not the thread that the process
// began with, which never ends and whose mounts /proc shows as those of the process. While it is held, another goroutine has another thread.
func onThread(mounts bool, f func()) {
	runtime.LockOSThread()
	if !mounts || !onFirstThread() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		f()
	}()
	<-ended
}

// run starts the program on the locked thread and waits for its end.
func (c Command) run(p *Process, started chan<- error) {
	changed, own := false, false
	if c.Alone {
		changed, own = ownMounts(c.Mounts)
	}
	if !changed {
		defer runtime.UnlockOSThread() // otherwise the thread ends with this goroutine, and its mounts with it
	}
	err := c.mount(own)
	if err != nil {
		started <- err
		return
	}
	for _, alone := range attempts(c.Alone) {
		p.command = c.command(alone)
		if err = p.command.Start(); err == nil {
			break
		}
	}
	started <- err
	if err == nil {
		if p.err = p.command.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
			p.err = ErrHeld
		}
	}
}

func attempts(alone bool) []bool {
	if alone {
		return []bool{true, false}
	}
	return []bool{false}
}

func (c Command) command(alone bool) *exec.Cmd {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.Env, c.Stdin, c.Stdout, c.Stderr, c.Files
	cmd.Dir, cmd.WaitDelay = cmp.Or(c.Dir, "/"), outputGrace
	c.confine(cmd, alone)
	return cmd
}

// String is the command for a reader, with its program's name only.
func (c Command) String() string {
	return textio.Shell(append([]string{filepath.Base(c.Path)}, c.Args...)...)
}

// Run runs the program to its end and returns its standard output, which may say why it failed. It is killed when ctx ends. The error has
// what it wrote to standard error.
func (c Command) Run(ctx context.Context) (string, error) {
	out, said := &textio.Head{MaxBytes: outputBytes}, NewTail(nil)
	c.Stdout, c.Stderr = out, said
	p, err := c.Start()
	if err != nil {
		return "", fmt.Errorf("start %s: %w", filepath.Base(c.Path), err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		<-p.done
		return out.String(), context.Cause(ctx)
	}
	if p.err != nil {
		return out.String(), fmt.Errorf("%s: %w%s", filepath.Base(c.Path), p.err, said.Quoted())
	}
	return out.String(), nil
}

// ID is its process id.
func (p *Process) ID() int { return p.command.Process.Pid }

// Done is closed when the process has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Bound ends reading of its output some seconds after its end, with os.ErrDeadlineExceeded: a descendant may hold the other end of the pipe.
func (p *Process) Bound(read *os.File) {
	go func() {
		<-p.done
		_ = read.SetReadDeadline(time.Now().Add(outputGrace))
	}()
}

// Wait waits for its end and returns how it ended, as exec.Cmd.Wait does.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends it a signal.
func (p *Process) Signal(s os.Signal) { _ = p.command.Process.Signal(s) }

// Kill ends it at once.
func (p *Process) Kill() { _ = p.command.Process.Kill() }

// UsedCPU is the CPU time, user and system, that it used so far; that of ended children is included once it has ended itself.
func (p *Process) UsedCPU() time.Duration {
	select {
	case <-p.done:
		if state := p.command.ProcessState; state != nil {
			return state.UserTime() + state.SystemTime()
		}
		return 0
	default:
		return cpuOf(p.ID())
	}
}

// Effort is the CPU time of its busiest thread since the last call, and the longest wait of a thread for a CPU. Only one goroutine
// may call it.
func (p *Process) Effort() interval.Effort { return p.effort.lap(p.ID()) }

// Failed reports whether err is an unsuccessful exit of a program, as opposed to one of running it.
func Failed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}

// Killed reports whether err is that of a program that a signal ended.
func Killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && !exit.Exited()
}

// Stopper ends a process: with a signal, and with SIGKILL if it has not ended in time. Only one goroutine uses it.
type Stopper struct {
	Process *Process
	Signal  os.Signal
	Grace   time.Duration
	kill    *time.Timer
}

// Begin asks the process to end; later calls have no effect.
func (s *Stopper) Begin() {
	if s.kill != nil {
		return
	}
	s.Process.Signal(s.Signal)
	s.kill = time.AfterFunc(s.Grace, s.Process.Kill)
}

// End releases the timer. It is called once the process has ended.
func (s *Stopper) End() {
	if s.kill != nil {
		s.kill.Stop()
	}
}

// Transcript keeps the beginning and the end of what programs write, for the bundle. Safe for concurrent use.
type Transcript struct {
	mu   sync.Mutex
	free int // bytes that the head still takes
	head textio.Head
	tail textio.Tail
}

// NewTranscript returns a transcript of at most bytesMax bytes.
func NewTranscript(bytesMax int) *Transcript {
	return &Transcript{free: bytesMax / 2, head: textio.Head{MaxBytes: bytesMax / 2}, tail: textio.Tail{MaxBytes: bytesMax / 2}}
}

func (t *Transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := min(len(p), t.free)
	t.free -= kept
	_, _ = t.head.Write(p[:kept])
	_, _ = t.tail.Write(p[kept:])
	return len(p), nil
}

// String returns what was kept as valid UTF-8.
func (t *Transcript) String() string {
	return strings.ToValidUTF8(t.head.String()+t.tail.String(), "\uFFFD")
}
