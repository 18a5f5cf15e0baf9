package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// The first argument says what the test's program is to be.
const (
	asKeeper = "__keeper"
	asHolder = "__holder"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asKeeper {
		if err := Keep(context.Background(), os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == asHolder {
		h, err := Hold(context.Background(), os.Args[2], NewHolder("of a child", 0))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held", h.Fence())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

// scope is one of this test alone.
func scope(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s %d %s", t.Name(), os.Getpid(), uuid.NewString())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOneHolder(t *testing.T) {
	at := scope(t)
	first, err := Hold(t.Context(), at, NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Hold(t.Context(), at, NewHolder("run-2", 0))
	var held *HeldError
	if !errors.As(err, &held) || held.By.Run != "run-1" || held.By.Process.PID != os.Getpid() || !held.Here() {
		t.Fatalf("a second lease: %v", err)
	}
	for _, part := range []string{`run "run-1"`, fmt.Sprint("process ", os.Getpid()), "@", "since "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not tell %q", err, part)
		}
	}
	other, err := Hold(t.Context(), at+" another", NewHolder("run-3", 0))
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Unlock()
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := Hold(t.Context(), at, NewHolder("run-2", first.Fence()))
	if err != nil || second.Fence() <= first.Fence() {
		t.Fatalf("after it was given back: %v", err)
	}
	_ = second.Unlock()
}

// Whatever a process starts meanwhile, a lease that is given back is free, and one that is not is not.
func TestManyWantIt(t *testing.T) {
	at := scope(t)
	var holders, most, granted atomic.Int64
	stop := make(chan struct{})
	var starters, wait sync.WaitGroup
	starters.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec.Command(self(t), "-test.run=^$").Run()
			}
		}
	})
	for range 4 {
		wait.Go(func() {
			for range 50 {
				h, err := Hold(t.Context(), at, NewHolder("r", 0))
				if held := (*HeldError)(nil); errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), holders.Add(1)))
				granted.Add(1)
				holders.Add(-1)
				_ = h.Unlock()
			}
		})
	}
	wait.Wait()
	close(stop)
	starters.Wait()
	if most.Load() != 1 || granted.Load() == 0 {
		t.Errorf("%d holders at once, %d leases", most.Load(), granted.Load())
	}
}

// child starts a process that holds the lease until its input closes.
func child(t *testing.T, at string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	c := exec.Command(self(t), asHolder, at)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	var fence uint64
	if _, err := fmt.Fscanf(out, "held %d\n", &fence); err != nil || fence == 0 {
		t.Fatalf("the child holds nothing: %v", err)
	}
	return c, in
}

// A holder that is stopped still holds, and is known by its process; one that is killed does not.
func TestDeathOfAHolder(t *testing.T) {
	at := scope(t)
	c, _ := child(t, at)
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err := Hold(t.Context(), at, NewHolder("run-2", 0))
	var held *HeldError
	if !errors.As(err, &held) || held.By.Process.PID != c.Process.Pid {
		t.Errorf("the lease of a process that is stopped: %v, want process %d", err, c.Process.Pid)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	h, err := Hold(t.Context(), at, NewHolder("run-2", 0))
	if err != nil {
		t.Fatalf("the lease of a process that was killed: %v", err)
	}
	_ = h.Unlock()
}

// What speaks nonsense at the socket neither gets the lease nor ends it.
func TestNonsenseAtTheSocket(t *testing.T) {
	at := scope(t)
	h, err := Hold(t.Context(), at, NewHolder("run-1", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Unlock()
	for _, text := range []string{"", "\n", "garbage\n", `{"take":{}}`, `{"take":{"over":"` + h.holder.ID + `"}}`, `{"drop":"` + h.holder.ID + `"}`,
		strings.Repeat("x", 1<<20), `{"take":` + strings.Repeat("[", 10000)} {
		conn, err := net.Dial("unix", address(at).Name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
	if other, err := ask(address(at), nil); err != nil || other.ID != h.holder.ID {
		t.Errorf("the holder is %+v, %v", other, err)
	}
}

// keepers are places whose leases processes of this machine keep, each in a scope of its own.
type keeper struct {
	scope, identity string
	command         []string
	silent          *atomic.Bool
}

var errSilent = errors.New("no route to host")

func (k keeper) Name() string { return "host " + k.identity }

func (k keeper) Identity(context.Context) (string, error) {
	if k.silent.Load() {
		return "", errSilent
	}
	return k.identity, nil
}

func (k keeper) Take(ctx context.Context, o Order) (Answer, error) {
	if k.silent.Load() {
		return Answer{}, errSilent
	}
	return Take(ctx, k.scope, o, k.command)
}

func (k keeper) Drop(_ context.Context, id string) error {
	if k.silent.Load() {
		return errSilent
	}
	return Drop(k.scope, id)
}

func keepers(t *testing.T, count int) (places []Place, silent []*atomic.Bool) {
	t.Helper()
	at := scope(t)
	for i := range count {
		silent = append(silent, &atomic.Bool{})
		k := keeper{fmt.Sprint(at, i), fmt.Sprint(i), []string{self(t), asKeeper}, silent[i]}
		places = append(places, k)
		t.Cleanup(func() {
			other, err := ask(address(k.scope), nil)
			if err == nil {
				t.Errorf("the lease of %s is left with %+v", k.Name(), other)
				_ = Drop(k.scope, other.ID)
			}
		})
	}
	return places, silent
}

// Of controllers that want the same machines, named in whatever order, each time one gets all.
func TestTogether(t *testing.T) {
	places, _ := keepers(t, 3)
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		var wait sync.WaitGroup
		groups, errs := make([]*Group, 3), make([]error, 3)
		for i := range groups {
			mine := append(append([]Place{}, places[i:]...), places[:i]...)
			wait.Go(func() { groups[i], errs[i] = Together(context.Background(), NewHolder(fmt.Sprint("run-", i), 0), mine) })
		}
		wait.Wait()
		won := 0
		for i, g := range groups {
			if g != nil {
				won++
				defer func() { _ = g.Unlock() }()
				if g.Fence() < uint64(time.Now().Add(-time.Hour).UnixNano()) {
					t.Errorf("fence %d", g.Fence())
				}
			} else if held := (*HeldError)(nil); !errors.As(errs[i], &held) || held.Where == "" {
				t.Errorf("round %d: %v", round, errs[i])
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d won: %v", round, won, errs)
		}
		for _, g := range groups {
			if g != nil {
				_ = g.Unlock()
			}
		}
	}
}

// A machine that does not answer is left out until it does, and kept out of others' hands then.
func TestSilentPlace(t *testing.T) {
	places, silent := keepers(t, 2)
	silent[0].Store(true)
	g, err := together(t.Context(), NewHolder("run-1", 0), places, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	silent[0].Store(false)
	for {
		if other, err := ask(address(places[0].(keeper).scope), nil); err == nil && other.Run == "run-1" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := Together(t.Context(), NewHolder("run-2", 0), places[:1]); !errors.As(err, new(*HeldError)) {
		t.Errorf("the one that was silent: %v", err)
	}
	if err := g.Unlock(); err != nil {
		t.Fatal(err)
	}
	silent[0].Store(true)
	silent[1].Store(true)
	if _, err := Together(t.Context(), NewHolder("run-2", 0), places); !errors.Is(err, errSilent) {
		t.Errorf("no machine answers: %v", err)
	}
}

// Renew takes a machine that was silent without waiting for the next period, and reports one that another holder took meanwhile.
func TestRenew(t *testing.T) {
	places, silent := keepers(t, 3)
	silent[0].Store(true)
	silent[1].Store(true)
	g, err := together(t.Context(), NewHolder("run-1", 0), places, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	silent[0].Store(false)
	if err := g.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if other, err := ask(address(places[0].(keeper).scope), nil); err != nil || other.Run != "run-1" {
		t.Errorf("the one that was silent has %+v, %v", other, err)
	}
	silent[1].Store(false)
	second, err := Together(t.Context(), NewHolder("run-2", 0), places[1:2])
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Renew(t.Context()); !errors.As(err, new(*HeldError)) {
		t.Errorf("the one that another took: %v", err)
	}
	_, _ = second.Unlock(), g.Unlock()
}

// A lease that its holder could not renew goes to the next requester, and the former holder is notified.
func TestLost(t *testing.T) {
	places, _ := keepers(t, 2)
	g, err := together(t.Context(), NewHolder("run-1", 0), places, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// As after its life: the keeper is gone, and another controller comes before this one is back.
	k := places[1].(keeper)
	elsewhere := NewHolder("run-2", 0)
	elsewhere.Process.Boot = "another machine"
	for taken := false; !taken; {
		if err := Drop(k.scope, g.holder.ID); err != nil {
			t.Fatal(err)
		}
		a, err := Take(t.Context(), k.scope, Order{Holder: elsewhere}, k.command)
		taken = err == nil && a.Other == nil
	}
	if h := <-g.Lost(); h.Run != "run-2" {
		t.Errorf("lost to %+v", h)
	}
	_ = g.Unlock()
	if other, err := ask(address(k.scope), nil); err != nil || other.ID != elsewhere.ID {
		t.Errorf("the one who had lost it took it from %+v, %v", other, err)
	}
	if err := Drop(k.scope, elsewhere.ID); err != nil {
		t.Fatal(err)
	}
}

// A keeper outlives its controller. The next controller of the same machine sees that it is dead and takes its place, with a
// higher fence; one of another machine cannot know and does not.
func TestDeadController(t *testing.T) {
	places, _ := keepers(t, 1)
	k := places[0].(keeper)
	c := exec.Command(self(t), "-test.run=^$")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	dead := NewHolder("run-1", 0)
	dead.Process.PID = c.Process.Pid
	dead.Process.Start, _ = startOf(c.Process.Pid)
	dead.Fence = 1 << 63 // as of a machine whose clock was ahead
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if !dead.gone() {
		t.Fatalf("process %+v is alive", dead.Process)
	}
	if a, err := Take(t.Context(), k.scope, Order{Holder: dead}, k.command); err != nil || a.Other != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	far := NewHolder("run-2", 0)
	if a, err := Take(t.Context(), k.scope, Order{Holder: far}, k.command); err != nil || a.Other == nil {
		t.Errorf("without a word about the holder: %+v, %v", a, err)
	}
	if a, err := Take(t.Context(), k.scope, Order{Holder: far, Over: far.ID}, k.command); err != nil || a.Other == nil {
		t.Errorf("over another lease: %+v, %v", a, err)
	}
	g, err := Together(t.Context(), NewHolder("run-3", 0), places)
	if err != nil {
		t.Fatal(err)
	}
	if g.Fence() <= dead.Fence {
		t.Errorf("fence %d after %d", g.Fence(), dead.Fence)
	}
	_ = g.Unlock()
}

// A keeper that is not renewed exits by itself.
func TestKeeperExpires(t *testing.T) {
	at := scope(t)
	text, err := json.Marshal(Keeper{Scope: at, Holder: NewHolder("run-1", 0), Life: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self(t), asKeeper, string(text))
	out, err := c.Output() // returns when it has ended
	var a Answer
	if err != nil || json.Unmarshal(out, &a) != nil || a.Other != nil || a.Fence == 0 {
		t.Errorf("%s, %v", out, err)
	}
	h, err := Hold(t.Context(), at, NewHolder("run-2", 0))
	if err != nil {
		t.Fatal(err)
	}
	_ = h.Unlock()
	for _, bad := range []string{"", "{}", "garbage", `{"life_ns":-1}`} {
		if err := Keep(t.Context(), bad, os.Stdout); err == nil {
			t.Errorf("%q was kept", bad)
		}
	}
}

// clocked is a place without a clock, as libvirt is: how old a lease is shows by what its holder wrote.
type clocked struct {
	mu     sync.Mutex
	holder Holder
	looked func(c *clocked)
}

func (c *clocked) Name() string                             { return "clocked" }
func (c *clocked) Identity(context.Context) (string, error) { return "x", nil }

func (c *clocked) Take(_ context.Context, o Order) (Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked != nil {
		c.looked(c)
	}
	if c.holder.ID != "" && c.holder.ID != o.Holder.ID && c.holder.ID != o.Over {
		other := c.holder
		return Answer{Other: &other}, nil
	}
	c.holder = o.Holder
	return Answer{Fence: o.Holder.Fence}, nil
}

func (c *clocked) Drop(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder.ID == id {
		c.holder = Holder{}
	}
	return nil
}
