package step

import (
	"context"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/unit"
	"github.com/braggdev/bragg/internal/verb"
)

var workloadWait = verb.Kind{
	Name:    "workload.Wait",
	Summary: "Wait for the end of a workload that was started with async, or until it is steady.",
	Doc: "The wait ends with the load, and no later than timeout_secs, 300 unless given, after the runtime and stagger_secs given to " +
		"workload.Start. VMs that this run itself powered off are not waited for.\n\n" +
		"With until: steady, an extension of X-Ray's step, the wait ends when the last window_secs of the load, 300 unless given, were " +
		"steady: IOPS, median and p99 of response time of all its VMs together, by SNIA's rule of five rounds and by changes of level. " +
		"The load goes on. The wait ends after max_secs, 1800 unless given, and with the load: the run then goes on, a finding " +
		"says why the load was not steady, and thresholds for it are undecided. The plan lists the shortest and the " +
		"longest time; a rehearsal shortens both, to 20 seconds at least.",
	Example: example.Deployed + `run:
  - workload.Start:
      workload_name: Load
      runtime_secs: 5
      async: True
  - workload.Wait:
      workload_name: Load
`,
	Needs: agentNeeds,
	Waits: true,
	New:   func() verb.Step { return new(waitWorkload) },
}

// Defaults of a wait until a load is steady: SNIA's five rounds of a minute, and six times as long.
const (
	settlingWindow = 5 * time.Minute
	settlingMost   = 30 * time.Minute
)

type waitWorkload struct {
	Workload string         `arg:"workload_name,required" of:"workload" doc:"Workload to wait for."`
	Timeout  *time.Duration `arg:"timeout_secs" unit:"s" scale:"timeout" doc:"How long it may take beyond its runtime; 300 without it. Not with until: steady."`
	Annotate bool           `arg:"annotate" default:"false" doc:"Mark the end on charts."`
	Until    string         `arg:"until" values:"steady" doc:"steady: wait until the load is steady, not for its end."`
	Window   *time.Duration `arg:"window_secs" unit:"s" scale:"window" doc:"How long it must have been steady; 300 without it. Only with until: steady."`
	Most     *time.Duration `arg:"max_secs" unit:"s" scale:"window" doc:"How long to wait; 1800 without it. Only with until: steady."`
}

func (s *waitWorkload) Check(v *verb.View, problems *verb.Problems) {
	checkStarted(s.Workload, false, v, problems)
	checkNotNegative(problems, "timeout_secs", s.Timeout)
	if s.Until == "" {
		onlyUntil := func(name string, given *time.Duration) {
			if given != nil {
				problems.Hint(name, "argument-without-until", "add until: steady", name+" is for a wait until the load is steady")
			}
		}
		onlyUntil("window_secs", s.Window)
		onlyUntil("max_secs", s.Most)
		return
	}
	if s.Timeout != nil {
		problems.Hint("timeout_secs", "timeout-with-until", "use max_secs", "timeout_secs is for a wait for the end of the load")
	}
	switch wait := s.settling(v.Factor); {
	case wait.Window < verb.SettlingWindowMin:
		problems.Errorf("window_secs", "argument-range", "window_secs must be at least %v: a shorter time does not show whether a load is steady",
			verb.SettlingWindowMin.Seconds())
	case wait.Most < wait.Window:
		problems.Errorf("max_secs", "argument-range", "max_secs must be at least window_secs (%s), not %s", unit.FormatDuration(wait.Window),
			unit.FormatDuration(wait.Most))
	}
}

// settling is the wait until the load is steady; factor is that of a rehearsal, or 0.
func (s *waitWorkload) settling(factor float64) verb.Settling {
	scaled := func(given *time.Duration, otherwise time.Duration) time.Duration {
		if given != nil {
			return *given
		}
		if factor > 0 && factor < 1 {
			otherwise = max(time.Duration(float64(otherwise)*factor).Round(time.Second), verb.SettlingWindowMin)
		}
		return otherwise
	}
	out := verb.Settling{Workload: s.Workload, Window: scaled(s.Window, settlingWindow), Most: scaled(s.Most, settlingMost)}
	if s.Most == nil {
		out.Most = max(out.Most, out.Window)
	}
	return out
}

func (s *waitWorkload) Effect(v *verb.View) verb.Effect {
	if s.Until == "" {
		return verb.Effect{Subject: s.Workload, Awaits: s.Workload}
	}
	wait := s.settling(v.Factor)
	return verb.Effect{Subject: s.Workload, Settles: &wait}
}

// Estimate: a load that is steady from the start takes one window.
func (s *waitWorkload) Estimate(v *verb.View) time.Duration {
	if s.Until == "" {
		return v.LoadLeft(s.Workload, false)
	}
	return s.settling(v.Factor).Window
}

func (s *waitWorkload) Run(ctx context.Context, env *verb.Env) error {
	if s.Until != "" {
		factor := 1.0
		if env.Plan.Rehearsal != nil {
			factor = env.Plan.Rehearsal.TimeFactor
		}
		if err := env.Loads.Settle(ctx, s.settling(factor)); err != nil {
			return err
		}
		env.Mark(s.Annotate, "%s: finished waiting for a steady load", s.Workload)
		return nil
	}
	timeout := timeoutDefault
	if s.Timeout != nil {
		timeout = *s.Timeout
	}
	if err := env.Loads.Wait(ctx, s.Workload, false, timeout); err != nil {
		return err
	}
	env.Mark(s.Annotate, "%s: finished workload", s.Workload)
	return nil
}
