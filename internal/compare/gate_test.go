package compare_test

import (
	"math"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/testreq"
)

func judge(t *testing.T, c *compare.Comparison, texts ...string) *compare.Gate {
	t.Helper()
	var conditions []compare.Condition
	for _, text := range texts {
		condition, err := compare.ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, condition)
	}
	c.Judge(conditions)
	return c.Gate
}

func TestGate(t *testing.T) {
	s := newSource(9, 0.01)
	slow := sets(t, s.runs(5, 1), s.runs(5, 0.8)) // IOPS −20 %, latency +25 %
	for text, want := range map[string]compare.Outcome{
		"p99 > 10%": compare.Failed, "p99 > 50%": compare.Passed, "p99 > 25%": compare.Undecided, "p99 < -10%": compare.Passed,
		"iops < -5%": compare.Failed, "iops < -40 %": compare.Passed, "IOPS > 5%": compare.Passed, "iops<-20%": compare.Undecided,
		`median of "Latency" > 10%`: compare.Failed, `p99 of "nothing" > 10%`: compare.Undecided, `p99 in "after nodes.PowerOff" > 10%`: compare.Undecided,
		"completion > 10%": compare.Undecided, "bandwidth < -1%": compare.Undecided,
	} {
		g := judge(t, slow, text)
		if g.Outcome != want || len(g.Checks) != 1 || g.Checks[0].Reason == "" {
			t.Errorf("%s: %+v", text, g)
		}
	}
	if g := judge(t, slow, "p99 > 25%", "iops < -5%"); g.Outcome != compare.Failed || g.Checks[0].Outcome != compare.Undecided {
		t.Errorf("a failed condition fails the gate: %+v", g)
	}
	if g := judge(t, sets(t, s.runs(1, 1), s.runs(1, 0.5)), "p99 > 10%"); g.Outcome != compare.Undecided || !math.IsNaN(float64(g.Checks[0].Low)) {
		t.Errorf("single runs decide nothing: %+v", g)
	}
	// More conditions widen every interval.
	one, two := judge(t, slow, "p99 > 10%").Checks[0], judge(t, slow, "p99 > 10%", "iops < -5%").Checks[0]
	if one.Low <= two.Low || one.High >= two.High {
		t.Errorf("%+v, %+v", one, two)
	}
}

// TestGateErrorRate: without any difference, a limit of 5 % fails in at most 5 % of all pairs, and with a slowdown by exactly the
// limit it neither passes nor fails in more.
func TestGateErrorRate(t *testing.T) {
	testreq.Rounds(t, 60, 200, func(t *testing.T, pairs int) {
		const seed = 31
		s := newSource(seed, 0.02)
		count := map[compare.Outcome]int{}
		for range pairs {
			if judge(t, sets(t, s.runs(3, 1), s.runs(3, 1)), "iops < -5%").Outcome == compare.Failed {
				count["failed without a difference"]++
			}
			count[judge(t, sets(t, s.runs(3, 1), s.runs(3, 0.9)), "iops < -10%").Outcome]++
		}
		if max(count["failed without a difference"], count[compare.Failed], count[compare.Passed]) > pairs*5/100 {
			t.Errorf("seed %d: %v", seed, count)
		}
	})
}

func TestConditionsAreRefused(t *testing.T) {
	for _, text := range []string{"", "p99", "p99 > ten%", "p99 > 10", "p99 = 10%", "p98 > 10%", "iops < -100%", "p99 > 1.2.3%", "p99 of X > 1%"} {
		if c, err := compare.ParseCondition(text); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
}
