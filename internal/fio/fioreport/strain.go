package fioreport

import (
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
)

// Strain reports whether the generator kept up, over the periods of all clones of a row.
type Strain struct {
	Periods   int // of all clones, whether or not they are long enough to be checked
	Saturated int // in which a thread was busy all the time
	Starved   int // in which the generator lacked CPU time
	Worst     interval.Effort
}

func (s *Strain) count(iv *interval.Interval) {
	s.Periods++
	if iv.Saturated() {
		s.Saturated++
	}
	if iv.Starved() {
		s.Starved++
	}
	s.Worst.Join(iv.Effort)
}

func (s *Strain) Add(o *Strain) {
	s.Periods += o.Periods
	s.Saturated += o.Saturated
	s.Starved += o.Starved
	s.Worst.Join(o.Worst)
}

// text writes the reasons to doubt the numbers, one per line; nothing if the generator kept up.
func (s *Strain) text(b *strings.Builder) {
	if s.Saturated > 0 {
		fmt.Fprintf(b, "  generator    : busy all the time in %d of %d periods; it may be the limit, and not the device\n", s.Saturated, s.Periods)
	}
	if s.Starved > 0 {
		fmt.Fprintf(b, "  generator    : lacked CPU time in %d of %d periods (%s); latencies contain its own waits\n", s.Starved, s.Periods,
			s.causes())
	}
}

// causes names what the generator waited for, with the worst of one period.
func (s *Strain) causes() string {
	var list []string
	for _, c := range []struct {
		nanos int64
		name  string
	}{{s.Worst.WaitedNanos, "waited"}, {s.Worst.StolenNanos, "stolen"}, {s.Worst.ThrottledNanos, "throttled"}} {
		if c.nanos > 0 {
			list = append(list, fmt.Sprintf("%s up to %s", c.name, time.Duration(c.nanos).Round(100*time.Microsecond)))
		}
	}
	return strings.Join(list, ", ")
}

// jsonStrain is a Strain under the key "bragg"; times are the worst of one period.
type jsonStrain struct {
	Periods        int   `json:"periods"`
	Saturated      int   `json:"saturated_periods"`
	Starved        int   `json:"starved_periods"`
	BusiestNanos   int64 `json:"busiest_max_ns"`
	WaitedNanos    int64 `json:"waited_max_ns"`
	StolenNanos    int64 `json:"stolen_max_ns"`
	ThrottledNanos int64 `json:"throttled_max_ns"`
}

func (s *Strain) json() jsonStrain {
	return jsonStrain{s.Periods, s.Saturated, s.Starved, s.Worst.BusiestNanos, s.Worst.WaitedNanos, s.Worst.StolenNanos, s.Worst.ThrottledNanos}
}
