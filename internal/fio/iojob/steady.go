package iojob

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/interval"
)

// judge watches the clones of one row and ends them when they are steady. A nil judge does nothing. Periods of all clones
// end at the same times, so that their sums between two checks are exact.
type judge struct {
	period  int64 // length of a delivered interval
	perStep int64 // number of periods per check

	mu      sync.Mutex
	members map[*clone]*judged
	from    int64 // number of the first period that counts; 0: not known yet
	next    int64 // number of the first period of the next check
	steady  fioreport.Steady
}

// judged is the data that one clone has delivered.
type judged struct {
	begun, left bool
	first       int64 // number of its first whole period
	reached     int64 // number after the last period that it has delivered
	periods     map[int64]judgedPeriod
}

type judgedPeriod struct{ operations, bytes, latency float64 }

// newJudges gives every clone whose job has a steady-state criterion a judge, one per row.
func newJudges(clones []*clone, period time.Duration) {
	groups := map[int]*judge{}
	for _, c := range clones {
		criterion := c.job.Control.SteadyState
		if criterion.Measure == "" || criterion.Duration <= 0 {
			continue
		}
		var j *judge
		if c.job.GroupReporting {
			j = groups[c.job.Group]
		}
		if j == nil {
			j = &judge{period: int64(period), members: map[*clone]*judged{}, steady: fioreport.Steady{Criterion: criterion}}
			j.perStep = max(1, int64(cmp.Or(criterion.CheckInterval, time.Second)/period))
			if c.job.GroupReporting {
				groups[c.job.Group] = j
			}
		}
		j.members[c] = &judged{periods: map[int64]judgedPeriod{}}
		c.judge = j
	}
}

// samplePeriod returns the longest period, at most sample, that divides every check interval.
func samplePeriod(jobs []fiojob.Job, sample time.Duration) time.Duration {
	common := time.Duration(0)
	for i := range jobs {
		s := &jobs[i].Control.SteadyState
		if s.Measure == "" || s.Duration <= 0 {
			continue
		}
		a, b := cmp.Or(s.CheckInterval, time.Second).Truncate(time.Millisecond), common
		for b > 0 {
			a, b = b, a%b
		}
		common = max(a, time.Millisecond)
	}
	if common == 0 {
		return sample
	}
	return common / ((common + sample - 1) / sample)
}

// add records what a clone did in one period.
func (j *judge) add(c *clone, iv *interval.Interval) {
	if j == nil || iv.Final {
		return // the last period is cut short
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.members[c]
	m.begun = true
	number := (iv.EndNanos() - 1) / j.period
	m.reached = number + 1
	if iv.LengthNanos != j.period {
		m.first = number + 1
	}
	p := m.periods[number]
	for d := range iv.Directions {
		t := &iv.Directions[d]
		p.operations += float64(t.Operations)
		p.bytes += float64(t.Bytes)
		if h := t.ResponseOrService(); h != nil {
			p.latency += h.Mean() * float64(h.Count())
		}
	}
	m.periods[number] = p
	j.check()
}

// leave records that a clone has ended.
func (j *judge) leave(c *clone) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.members[c].left = true
	if j.from > 0 {
		j.check()
	}
}

// check checks every interval that all clones have delivered.
func (j *judge) check() {
	reached, alive := int64(math.MaxInt64), false
	for c, m := range j.members {
		if m.left {
			continue
		}
		if !m.begun {
			return
		}
		alive = true
		reached = min(reached, m.reached)
		if j.from == 0 || j.next == j.from {
			ramp := int64(c.job.Control.SteadyState.RampTime)
			// The first whole period after the ramp of the last clone that began.
			j.from = max(j.from, m.first, (c.countedFrom()+ramp+j.period-1)/j.period)
			j.next = j.from
		}
	}
	for alive && j.next+j.perStep <= reached && !j.steady.Attained {
		j.steady.Add(j.step())
		j.next += j.perStep
		if j.steady.Attained {
			for c := range j.members {
				c.course.stop()
			}
		}
	}
}

// step adds up the periods of one check interval.
func (j *judge) step() fioreport.SteadyValue {
	var sum judgedPeriod
	for number := j.next; number < j.next+j.perStep; number++ {
		for _, m := range j.members {
			p := m.periods[number]
			delete(m.periods, number)
			sum.operations += p.operations
			sum.bytes += p.bytes
			sum.latency += p.latency
		}
	}
	seconds := float64(j.perStep*j.period) / 1e9
	v := fioreport.SteadyValue{IOPS: sum.operations / seconds, Bandwidth: sum.bytes / seconds}
	if sum.operations > 0 {
		v.Latency = sum.latency / sum.operations
	}
	return v
}

// result returns a copy of the result.
func (j *judge) result() *fioreport.Steady {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.steady
	out.Window = slices.Clone(out.Window)
	return &out
}
