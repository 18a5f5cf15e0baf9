package measuring

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// scripted is a worker whose completions are known.
type scripted struct {
	Tally
	completions []int64
	lap         [2]int64 // busiest and waited until the next lap
}

func (s *scripted) Take(boundary int64) []Period {
	for len(s.completions) > 0 && s.completions[0] < boundary {
		for s.PeriodEnd <= s.completions[0] {
			s.close()
		}
		s.Record.Answered(s.completions[0])
		s.completions = s.completions[1:]
	}
	for s.PeriodEnd <= boundary {
		s.close()
	}
	if !s.Ends(boundary) {
		s.Tally.Close(Period{End: boundary})
	}
	return s.Tally.Take(boundary)
}

func (s *scripted) close() {
	s.Tally.Close(Period{End: s.PeriodEnd})
	s.PeriodEnd += 1e9
}

func (s *scripted) CPUNanos() int64 { return 0 }

func (s *scripted) Lap() (busiest, waited int64) {
	busiest, waited = s.lap[0], s.lap[1]
	s.lap = [2]int64{}
	return busiest, waited
}

// TestGapsJoinOverIntervalsAndWorkers: the stretches without a completion of any worker are those of the intervals, joined
// where an interval ends.
func TestGapsJoinOverIntervalsAndWorkers(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		start := int64(1e12) + random.Int64N(2e9)
		end := start + random.Int64N(5e9) + 1e8
		var sources []Source
		all := []int64{start}
		for range 1 + random.IntN(3) {
			s := &scripted{Tally: NewTally(func() *Recorder { return NewRecorder([3]bool{}, [3]bool{}, 0) }, &Splits{})}
			s.PeriodEnd = FloorTo(start, 1e9) + 1e9
			for at := start; at < end; {
				at += random.Int64N(5e6)
				if random.IntN(50) == 0 {
					at += random.Int64N(1e9) // a stall
				}
				if at < end {
					s.completions, all = append(s.completions, at), append(all, at)
				}
			}
			sources = append(sources, s)
		}
		slices.Sort(all)
		all = append(all, end)
		var want []interval.Gap
		for i := 1; i < len(all); i++ {
			if all[i]-all[i-1] >= int64(interval.GapMin) {
				want = append(want, interval.Gap{FromNanos: all[i-1], ToNanos: all[i]})
			}
		}
		if got := joined(t, sources, start, end); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %d workers: gaps\n%v, want\n%v", seed, len(sources), got, want)
		}
	}
}

// joined collects intervals of the workers from start to end, and joins their gaps.
func joined(t *testing.T, sources []Source, start, end int64) []interval.Gap {
	var got []interval.Gap
	at := start
	sink := load.SinkFunc(func(iv interval.Interval) {
		if iv.StartNanos != at || len(iv.Gaps) == 0 || iv.Gaps[0].FromNanos != 0 || iv.Gaps[len(iv.Gaps)-1].ToNanos != iv.LengthNanos {
			t.Fatalf("interval from %d to %d after %d with gaps %v", iv.StartNanos, iv.EndNanos(), at, iv.Gaps)
		}
		for i, g := range iv.Gaps {
			g.FromNanos, g.ToNanos = g.FromNanos+at, g.ToNanos+at
			if n := len(got); i == 0 && n > 0 {
				got[n-1].ToNanos = g.ToNanos
			} else {
				got = append(got, g)
			}
		}
		at = iv.EndNanos()
	})
	clock := NewClock(0)
	c := NewCollector(load.Workload{IntervalLength: 1e9}, nil, &clock, &Splits{}, Span{start, end})
	c.take(sources, sink)
	for now := start; now < end; now += tickNanos {
		c.tick(now)
		c.lastTick = now
	}
	c.tick(end)
	c.final(end)
	return slices.DeleteFunc(got, func(g interval.Gap) bool { return g.ToNanos-g.FromNanos < int64(interval.GapMin) })
}
