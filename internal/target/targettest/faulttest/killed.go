package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// killed kills a controller at each of its changes, before or after the platform carried it out; then another one cleans up.
// BRAGG_SOAK_FAULTS tries both at each.
func (h Harness) killed(t *testing.T) {
	first := h.start(t)
	total := first.controlled()
	if total < 4*vmCount {
		t.Fatalf("a life has %d changes", total)
	}
	first.clean()
	all, threads := killings(total), max(1, h.Threads)
	for i := range threads {
		t.Run(fmt.Sprint("controllers ", i+1), func(t *testing.T) {
			t.Parallel()
			r := h.start(t)
			for n := i; n < len(all); n += threads {
				died := r.kill(all[n])
				if !died && all[n].change <= total-spread {
					t.Errorf("change %d of %d was not reached", all[n].change, total)
				}
				r.clean()
			}
		})
	}
}

// spread is by how much the number of changes differs from life to life, since VMs are changed at the same time.
const spread = 3

// killing is when a controller dies.
type killing struct {
	change int
	passed bool // to the platform
}

func killings(total int) []killing {
	both := os.Getenv("BRAGG_SOAK_FAULTS") != ""
	var all []killing
	for n := 1; n <= total; n++ {
		passed := rand.IntN(2) == 0
		all = append(all, killing{n, passed})
		if both {
			all = append(all, killing{n, !passed})
		}
	}
	return all
}

// controlled runs a controller to its end and returns the number of changes.
func (r *trial) controlled() int {
	r.Helper()
	r.gate.set(nil)
	command, out := r.command(r.Context())
	if err := command.Run(); err != nil {
		r.Fatalf("controller: %v: %s", err, out)
	}
	return r.gate.count()
}

// command is a controller, which is killed when ctx ends.
func (r *trial) command(ctx context.Context) (*exec.Cmd, *strings.Builder) {
	r.Helper()
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	text, err := json.Marshal(order{r.File, r.tag})
	if err != nil {
		r.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, asController, string(text)) // SIGKILL
	r.noSecret("an argument list", strings.Join(c.Args, " "))
	out := &strings.Builder{}
	c.Stdout, c.Stderr = out, out
	return c, out
}

// kill reports whether the controller died.
func (r *trial) kill(k killing) bool {
	ctx, kill := context.WithCancel(r.Context())
	defer kill()
	command, out := r.command(ctx)
	var dead atomic.Bool
	var died atomic.Value
	r.gate.set(func(c call) {
		if c.number == k.change {
			died.Store(c.change)
			dead.Store(true)
			if !k.passed {
				kill()
				c.lost()
			}
			defer kill()
			c.unanswered()
		}
		if dead.Load() {
			c.lost()
		}
		c.pass()
	})
	err := command.Run()
	r.gate.set(nil)
	r.noSecret("the output of a controller", out.String())
	if err == nil || !dead.Load() {
		return false
	}
	r.Logf("killed at change %d, %v, carried out: %t", k.change, died.Load(), k.passed)
	return true
}
