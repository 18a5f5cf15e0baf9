package executor

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/plan"
)

var update = flag.Bool("update", false, "rewrite goldens")

// TestMachineTraces plays the recorded traces in testdata/machine. A trace is a list of blocks: a command, the line
// "----", and what the machine answered: its actions, then the state.
//
//	steps PHASE ID NAME …     begins a run with these steps
//	start | done ID [ERROR] | want NAME | finished HANDLE [ERROR] | fatal HANDLE ERROR
//	undone ITEM [ERROR] | stop LEVEL | guard REASON | journal ERROR | grace
func TestMachineTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/machine/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no traces", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playTrace(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the machine answers differently; got:\n%s", got)
			}
		})
	}
}

func playTrace(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	var s state
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		head, _, ok := strings.Cut(block, "\n----")
		if !ok {
			fmt.Fprintf(&out, "%s\n\n", block) // a remark
			continue
		}
		words := strings.Fields(head)
		fmt.Fprintf(&out, "%s\n----\n", head)
		if words[0] == "steps" {
			s = state{Stage: stageIdle, steps: traceSteps(t, words[1:])}
		} else {
			var actions []action
			s, actions = s.next(traceOutcome(t, head))
			for _, a := range actions {
				fmt.Fprintln(&out, a)
			}
		}
		fmt.Fprintf(&out, "%s\n", s)
		for _, p := range s.Problems {
			fmt.Fprintf(&out, "problem %s\n", p)
		}
		out.WriteString("\n")
	}
	return strings.TrimSpace(out.String()) + "\n"
}

func traceSteps(t *testing.T, words []string) []stepRef {
	t.Helper()
	var refs []stepRef
	for w := range slices.Chunk(words, 3) {
		id, err := strconv.Atoi(w[1])
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, stepRef{Phase: plan.Phase(w[0]), ID: id, Name: w[2]})
	}
	return refs
}

func traceOutcome(t *testing.T, line string) outcome {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	first, text, _ := strings.Cut(rest, " ")
	number := 0
	if verb == "done" || verb == "finished" || verb == "fatal" || verb == "stop" {
		n, err := strconv.Atoi(first)
		if err != nil {
			t.Fatal(err)
		}
		number = n
	}
	switch verb {
	case "start":
		return outcome{Start: true}
	case "done":
		return outcome{StepDone: number, Err: text}
	case "want":
		return outcome{Wanted: rest}
	case "finished", "fatal":
		return outcome{Finished: number, Err: text, Fatal: verb == "fatal"}
	case "undone":
		return outcome{UndoDone: undoItem(first), Err: text}
	case "stop":
		return outcome{Stop: number}
	case "guard":
		return outcome{Guard: rest}
	case "journal":
		return outcome{Journal: true, Err: rest}
	case "grace":
		return outcome{Grace: true}
	}
	t.Fatalf("unknown command %q", line)
	return outcome{}
}

// world answers the machine's actions at random, as steps, loads and undoing would.
type world struct {
	running    int
	background []int
	undoing    undoItem
	undone     []undoItem
	begun      []plan.Phase
	ended      []plan.Phase
	grace      bool
	finished   int
	abandoned  bool
	ran        []int
	cancelled  bool
	restored   int // how many steps had run when nodes were powered on again
}

func (w *world) perform(t *rapid.T, actions []action) {
	for _, a := range actions {
		if w.finished > 0 {
			t.Fatalf("%v after finish", a)
		}
		switch a.Kind {
		case actBeginPhase:
			w.begun = append(w.begun, a.Phase)
		case actEndPhase:
			w.ended = append(w.ended, a.Phase)
		case actRunStep:
			if w.running != 0 {
				t.Fatalf("step %d begins while %d runs", a.Step, w.running)
			}
			w.running, w.cancelled = a.Step, false
			w.ran = append(w.ran, a.Step)
		case actCancelStep:
			if w.running != a.Step {
				t.Fatalf("cancels %d while %d runs", a.Step, w.running)
			}
			w.cancelled = true
		case actGrant:
			w.background = append(w.background, a.Handle)
		case actUndo:
			if w.undoing != "" {
				t.Fatalf("undoes %s while %s is under way", a.Undo, w.undoing)
			}
			w.undoing = a.Undo
			if a.Undo == undoPower {
				w.restored = len(w.ran)
			}
		case actStartGrace:
			w.grace = true
		case actAbandoned:
			w.abandoned = true
		case actFinish:
			w.finished++
		}
	}
}

// TestMachineAlwaysUndoes: whatever happens in whatever order, a run ends, undoes everything in order unless the user
// gave up, and closes every phase that it began.
func TestMachineAlwaysUndoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s state
		s.Stage = stageIdle
		id := 0
		for _, p := range []plan.Phase{plan.Setup, plan.Run, plan.Teardown} {
			for range rapid.IntRange(0, 3).Draw(t, string(p)) {
				id++
				s.steps = append(s.steps, stepRef{ID: id, Phase: p, Name: fmt.Sprint("step", id)})
			}
		}
		w := &world{}
		turn := func(o outcome) {
			var actions []action
			s, actions = s.next(o)
			w.perform(t, actions)
		}
		turn(outcome{Start: true})
		for range 400 {
			if w.finished > 0 {
				break
			}
			turn(randomOutcome(t, w, s))
		}
		checkEnd(t, w, s)
	})
}

func randomOutcome(t *rapid.T, w *world, s state) outcome {
	fail := func() string { return rapid.SampledFrom([]string{"", "", "", "broken"}).Draw(t, "error") }
	var possible []string
	if w.running != 0 {
		possible = append(possible, "step", "step", "want")
	}
	if len(w.background) > 0 {
		possible = append(possible, "background", "background")
	}
	if w.undoing != "" {
		possible = append(possible, "undo", "undo", "undo")
	}
	if w.grace {
		possible = append(possible, "grace")
	}
	possible = append(possible, "stop", "guard", "journal", "want")
	switch rapid.SampledFrom(possible).Draw(t, "event") {
	case "step":
		o := outcome{StepDone: w.running, Err: fail()}
		w.running = 0
		return o
	case "want":
		return outcome{Wanted: "load"}
	case "background":
		i := rapid.IntRange(0, len(w.background)-1).Draw(t, "handle")
		o := outcome{Finished: w.background[i], Err: fail(), Fatal: rapid.Bool().Draw(t, "fatal")}
		w.background = slices.Delete(w.background, i, i+1)
		return o
	case "undo":
		o := outcome{UndoDone: w.undoing, Err: fail()}
		w.undone = append(w.undone, w.undoing)
		w.undoing = ""
		return o
	case "grace":
		w.grace = false
		return outcome{Grace: true}
	case "stop":
		// The second stop ends everything quickly, so it is rare here.
		return outcome{Stop: rapid.SampledFrom([]int{1, 1, 1, 1, 1, 2}).Draw(t, "level")}
	case "guard":
		return outcome{Guard: "space ran out"}
	}
	return outcome{Journal: true, Err: "no space"}
}

func checkEnd(t *rapid.T, w *world, s state) {
	if w.finished != 1 {
		t.Fatalf("finished %d times; %s", w.finished, s)
	}
	if s.Ended == "" || (s.Ended != Completed) != (s.Reason != "") {
		t.Fatalf("ended %q because of %q", s.Ended, s.Reason)
	}
	if w.abandoned != (s.StopLevel == 2) {
		t.Fatalf("abandoned %v at stop level %d", w.abandoned, s.StopLevel)
	}
	if w.abandoned {
		return
	}
	if want := []undoItem{undoPower, undoSteps, undoVMs}; !slices.Equal(w.undone, want) {
		t.Fatalf("undone %v, want %v", w.undone, want)
	}
	if !slices.Equal(w.begun, w.ended) || w.begun[len(w.begun)-1] != plan.Teardown {
		t.Fatalf("began phases %v, ended %v", w.begun, w.ended)
	}
	for i, id := range w.ran {
		if phase := s.steps[id-1].Phase; (phase == plan.Teardown) != (i >= w.restored) {
			t.Fatalf("step %d of %s ran at place %d, nodes were powered on at %d", id, phase, i, w.restored)
		}
	}
	for _, ref := range s.steps {
		if ref.Phase == plan.Teardown && !slices.Contains(w.ran, ref.ID) {
			t.Fatalf("step %d of teardown did not run", ref.ID)
		}
	}
}
