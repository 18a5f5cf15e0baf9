// Package faulttest is the list of what goes wrong between a controller and a platform, as tests that every provider with an API passes:
// a busy or slow API, answers and tasks that are lost, sessions that end, objects of others with the same names, a second controller,
// and controllers that are killed at every change.
//
//	target ──▶ Gate: what goes wrong ──▶ API of the platform (simulated)
//	life: what a run does with VMs                  ◀── Left, Intact: what is there in truth
//
// Whatever happens, nothing of the run is left in the end, nothing of others was touched, and no secret is in any text.
package faulttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
)

// Harness adapts the list to one provider.
type Harness struct {
	// Open opens a target; also in a controller of its own.
	Open func(ctx context.Context, c target.Config) (target.Target, error)
	// Provider parses target files.
	Provider target.Provider
	// Start starts a platform for one test.
	Start func(t *testing.T) Platform
	// Threads is how many platforms are tested at the same time, 0: 1.
	Threads int
	// Soak are the faults that only BRAGG_SOAK_FAULTS tries: another kind of VMs of the same provider passes them anyway.
	Soak []string
}

// Platform is one platform, which ends with its test. Functions that are nil are what it does not have.
type Platform struct {
	File    string   // target file
	Secrets []string // that no text may contain
	// Front puts a handler before the platform's own.
	Front func(func(platform http.Handler) http.Handler)
	// Change is what a request changes on the platform, and "" if it changes nothing. The body can still be read afterwards.
	Change func(*http.Request) string
	// Busy answers as the platform does when it has too much to do.
	Busy func(w http.ResponseWriter, r *http.Request)
	// ExpireSessions ends all sessions.
	ExpireSessions func()
	// RememberTasks is whether the platform still knows tasks that have ended, as it does at the beginning.
	RememberTasks func(bool)
	// Left lists what is there and not of others: kinds and names.
	Left func() []string
	// Plant makes an object of another owner where Left listed one. Intact reports what became of those.
	Plant  func(t *testing.T, left string)
	Intact func() error
}

// Run runs the list.
func (h Harness) Run(t *testing.T) {
	all := map[string]func(*trial){
		"busy": busy, "slow": slow, "hangs": hangs, "answers lost": answersLost, "sessions expire": sessionsExpire, "tasks lost": tasksLost,
		"foreign objects": foreignObjects, "second controller": secondController,
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // on a platform of its own; most of them wait
			if slices.Contains(h.Soak, name) {
				testreq.Soak(t, "BRAGG_SOAK_FAULTS", "another kind of VMs of the same provider passes it in every run")
			}
			all[name](h.start(t))
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		h.killed(t)
	})
}

// trial is one fault with its platform.
type trial struct {
	*testing.T
	Platform
	h    Harness
	gate *gate
	tag  target.Tag
}

func (h Harness) start(t *testing.T) *trial {
	t.Helper()
	r := &trial{T: t, Platform: h.Start(t), h: h, tag: targettest.NewTag("run-1")}
	r.gate = &gate{change: r.Change}
	r.Front(r.gate.before)
	return r
}

// open opens the target as another controller.
func (r *trial) open() target.Target {
	r.Helper()
	text, err := os.ReadFile(r.File)
	if err != nil {
		r.Fatal(err)
	}
	c, list := target.ParseConfig(r.File, text, []target.Provider{r.h.Provider})
	if len(list) > 0 {
		r.Fatal(list)
	}
	opened, err := r.h.Open(r.Context(), c)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = opened.Close() })
	return opened
}

// live runs a life, whose error contains no secret.
func (r *trial) live(ctx context.Context) error {
	r.Helper()
	err := life(ctx, r.open(), r.tag)
	if err != nil {
		r.noSecret("an error", fmt.Sprintf("%v %s", err, diag.Sentence(err)))
	}
	return err
}

// noSecret searches a text.
func (r *trial) noSecret(what, text string) {
	r.Helper()
	for _, secret := range r.Secrets {
		if strings.Contains(text, secret) {
			r.Errorf("a secret is in %s", what)
		}
	}
}

// clean does what bragg clean does, as another controller, and checks that only objects of others are there.
func (r *trial) clean() {
	r.Helper()
	t := r.open()
	var lock target.Lock
	if l, ok := t.(target.Locker); ok {
		var err error
		if lock, err = l.Lock(r.Context(), lease.NewHolder("cleaning", 0)); err != nil {
			r.Fatalf("take the lease of a dead controller: %v", err)
		}
	}
	for range rounds {
		vms, err := t.Owned(r.Context(), r.tag)
		if err == nil && len(vms) == 0 {
			break
		}
		if err == nil {
			err = t.Delete(r.Context(), r.tag, vms)
		}
		if err != nil {
			r.Fatalf("clean: %v", err)
		}
	}
	if lock != nil {
		if err := lock.Unlock(); err != nil {
			r.Errorf("release the lease: %v", err)
		}
	}
	r.nothingLeft()
}

// rounds is how often what is left is listed: what a dead controller requested last may appear after the first.
const rounds = 10

func (r *trial) nothingLeft() {
	r.Helper()
	var left []string
	for range rounds { // a platform may take a moment to remove what was deleted
		if left = r.Left(); len(left) == 0 {
			break
		}
		time.Sleep(pause)
	}
	if len(left) > 0 {
		r.Errorf("left: %q", left)
	}
	if r.Intact != nil {
		if err := r.Intact(); err != nil {
			r.Errorf("objects of others: %v", err)
		}
	}
}

const pause = 50 * time.Millisecond

// order is the argument of a controller.
type order struct {
	File string
	Tag  target.Tag
}

// asController makes the program of a test a controller, which a test kills.
const asController = "__controller"

// Main is called first in TestMain: it is the controller, and does not return, where the program was started as one.
func (h Harness) Main() {
	if len(os.Args) != 3 || os.Args[1] != asController {
		return
	}
	if err := h.control(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, diag.Sentence(err))
		os.Exit(1)
	}
	os.Exit(0)
}

func (h Harness) control(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	file, err := os.ReadFile(o.File)
	if err != nil {
		return err
	}
	c, list := target.ParseConfig(o.File, file, []target.Provider{h.Provider})
	if len(list) > 0 {
		return list.Err()
	}
	ctx := context.Background()
	t, err := h.Open(ctx, c)
	if err != nil {
		return err
	}
	if l, ok := t.(target.Locker); ok {
		lock, err := l.Lock(ctx, lease.NewHolder(o.Tag.Run, 0))
		if err != nil {
			return err
		}
		defer lock.Unlock() //nolint:errcheck // the test sees what is left
	}
	return life(ctx, t, o.Tag)
}
