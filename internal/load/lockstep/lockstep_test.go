package lockstep_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/load/lockstep"
)

// load is a coordinator and how to join it.
func load(t *testing.T, members int) (*lockstep.Coordinator, func(rank int) lockstep.Place) {
	t.Helper()
	var names []string
	for i := range members {
		names = append(names, fmt.Sprintf("vm-%d", i+1))
	}
	secret := lockstep.NewSecret()
	c, err := lockstep.Listen("127.0.0.1", secret, names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, func(rank int) lockstep.Place {
		return lockstep.Place{Address: fmt.Sprintf("127.0.0.1:%d", c.Port()), Name: names[rank], Rank: rank, Secret: secret}
	}
}

// together runs do on all members.
func together(t *testing.T, members int, place func(int) lockstep.Place, do func(rank int, m *lockstep.Member)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for rank := range members {
		all.Go(func() {
			m, err := lockstep.Join(ctx, place(rank))
			if err != nil {
				t.Error(err)
				return
			}
			do(rank, m)
		})
	}
	all.Wait()
}

// No member is ever more than one step ahead of another, all get the same sums and minima, and one of them came last.
func TestAllStepTogether(t *testing.T) {
	const members, steps = 5, 300
	_, place := load(t, members)
	var mu sync.Mutex
	at, last := make([]int, members), make([]int, steps)
	together(t, members, place, func(rank int, m *lockstep.Member) {
		defer m.Leave(nil)
		for step := range steps {
			got, err := m.Step(t.Context(), float64(rank), float64(step))
			if err != nil {
				t.Error(err)
				return
			}
			if got.Sums[0] != 10 || got.Sums[1] != float64(members*step) || got.Minima[0] != 0 || got.Minima[1] != float64(step) {
				t.Errorf("step %d: %+v", step, got)
				return
			}
			mu.Lock()
			if at[rank]++; got.Last {
				last[step]++
			}
			if slices.Max(at)-slices.Min(at) > 1 {
				t.Errorf("steps %v", at)
			}
			mu.Unlock()
		}
	})
	for step, n := range last {
		if n != 1 {
			t.Errorf("%d members were the last of step %d", n, step)
		}
	}
}

// Members that are left get the reason, whatever it is.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*lockstep.Member, *lockstep.Coordinator)
		want  string
	}{
		"in order":         {func(m *lockstep.Member, _ *lockstep.Coordinator) { m.Leave(nil) }, lockstep.ErrEnded.Error()},
		"failed":           {func(m *lockstep.Member, _ *lockstep.Coordinator) { m.Leave(errors.New("disk broken")) }, `vm "vm-2" ended the load: disk broken`},
		"long reason":      {func(m *lockstep.Member, _ *lockstep.Coordinator) { m.Leave(errors.New(strings.Repeat("x", 1<<17))) }, "xxxx"},
		"lost":             {func(m *lockstep.Member, _ *lockstep.Coordinator) { m.Cut() }, `vm "vm-2" was lost`},
		"lost coordinator": {func(m *lockstep.Member, c *lockstep.Coordinator) { c.Close(); m.Leave(nil) }, "coordinates the barrier was lost"},
		"other step number": {func(m *lockstep.Member, _ *lockstep.Coordinator) {
			m.Jump()
			_, _ = m.Step(t.Context(), 1)
			m.Leave(nil)
		}, "step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			coordinator, place := load(t, 3)
			together(t, 3, place, func(rank int, m *lockstep.Member) {
				if _, err := m.Step(t.Context(), 1); err != nil {
					t.Error(err)
				}
				if rank == 1 {
					c.leave(m, coordinator)
					return
				}
				defer m.Leave(nil)
				if _, err := m.Step(t.Context(), 1); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
			})
		})
	}
}

// A member that waits goes away when its load ends.
func TestCancelled(t *testing.T) {
	_, place := load(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lockstep.Join(ctx, place(0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// Another load, and whatever connects, is refused, and disturbs no member.
func TestStrangers(t *testing.T) {
	c, place := load(t, 2)
	stranger := place(1)
	stranger.Secret = lockstep.NewSecret()
	if _, err := lockstep.Join(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Error(err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	together(t, 2, place, func(rank int, m *lockstep.Member) {
		defer m.Leave(nil)
		if rank == 0 {
			if second, err := lockstep.Join(t.Context(), place(0)); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("%v, %v", second, err)
			}
		}
		if _, err := m.Step(t.Context()); err != nil {
			t.Error(err)
		}
	})
	stranger.Secret = stranger.Secret[1:]
	if _, err := lockstep.Join(t.Context(), stranger); err == nil {
		t.Error("a short secret")
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(lockstep.Encode(1, 2, []float64{1, 2}, "text"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		again, err := lockstep.Decode(data)
		if err == nil && !strings.HasPrefix(string(data), string(again)) {
			t.Errorf("%x became %x", data, again)
		}
	})
}

func BenchmarkStep(b *testing.B) {
	secret := lockstep.NewSecret()
	c, err := lockstep.Listen("127.0.0.1", secret, []string{"1", "2"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for rank := range 2 {
		all.Go(func() {
			m, err := lockstep.Join(b.Context(), lockstep.Place{Address: fmt.Sprintf("127.0.0.1:%d", c.Port()), Rank: rank, Secret: secret})
			if err != nil {
				b.Error(err)
				return
			}
			defer m.Leave(nil)
			for range b.N {
				if _, err := m.Step(b.Context(), 1, 2, 3, 4, 5); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
