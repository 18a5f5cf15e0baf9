package bmc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

var errSilent = errors.New("no answer")

func silent(context.Context) error { return errSilent }

// A node may be missing when this program took its power and it has none, and for no other reason.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 3)
		l.LimitNodesOff(2)
		wants := func(node string, missing bool) {
			t.Helper()
			if err := l.Answers(t.Context(), node, silent); (err != nil) != missing {
				t.Errorf("node %s: %v, want it missing: %v", node, err, missing)
			}
			if err := l.Answers(t.Context(), node, func(context.Context) error { return nil }); err != nil {
				t.Errorf("node %s answers: %v", node, err)
			}
		}
		l.machines[2].on = false // powered off by another party
		wants("1", true)
		wants("3", true)
		wants("no such node", true)
		l.machines[1].deaf = true
		if err := l.PowerOffNode(t.Context(), "2"); codeOf(err) != CodeNoEffect {
			t.Fatal(err)
		}
		wants("2", true)
		l.machines[1].deaf, l.machines[2].on = false, true
		if err := l.PowerOnNode(t.Context(), "2"); err != nil {
			t.Fatal(err)
		}
		if err := l.PowerOffNode(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		wants("1", false)
		wants("2", true)
		if err := l.PowerOnNode(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		wants("1", true)
	})
}

// A node that loses its power while it is being asked is not waited for: a network gives up much later.
func TestAnswersOfNodeThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.LimitNodesOff(1)
		cut := make(chan error)
		go func() {
			time.Sleep(10 * time.Second)
			cut <- l.PowerOffNode(t.Context(), "1")
		}()
		began := time.Now()
		err := l.Answers(t.Context(), "1", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); err != nil || took < 10*time.Second || took > 20*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if err := <-cut; err != nil {
			t.Error(err)
		}
	})
}

// late is a survey that asks for another node after a while.
type late struct {
	*lab
	after time.Duration
}

func (s late) Survey(ctx context.Context, nodeID string) (Survey, error) {
	if nodeID == "2" {
		time.Sleep(s.after)
		if err := s.Answers(ctx, "1", func(context.Context) error { return nil }); err != nil {
			return Survey{}, err
		}
	}
	return s.lab.Survey(ctx, nodeID)
}

// Two nodes are cut at the same time, also when the survey of one asks for the other, which has no more to wait for than its command.
func TestSurveyOfNodesThatAreCutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.LimitNodesOff(2)
		l.surveyor = late{l, 2 * time.Second}
		gate, began := target.NewGate(2), time.Now()
		errs := make(chan error)
		for _, id := range []string{"1", "2"} {
			go func() {
				ctx, leave := target.WithGate(t.Context(), gate)
				defer leave()
				errs <- l.PowerOffNode(ctx, id)
			}()
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("both are off after %v", took)
		}
	})
}
