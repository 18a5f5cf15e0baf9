package mlperf

import (
	"context"
	"fmt"

	"github.com/braggdev/bragg/internal/textio"
)

// find searches for the largest number of accelerators whose AU reaches the threshold: it doubles the number until the threshold is
// missed, halves the interval between the last two, and runs the answer once more, because one trial may be lucky. A trial has few
// steps, some of them on batches that were read ahead: the rate of reads after those must reach the threshold too.
func (t *trainer) find(ctx context.Context) error {
	s := &search{most: t.accelerators}
	for number := 1; ctx.Err() == nil; number++ {
		accelerators, confirming := s.next()
		if accelerators == 0 {
			break
		}
		t.meter.forget()
		r, err := t.run(ctx, number, accelerators, t.searchSteps)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		met := min(r.au, r.supply) >= t.model.threshold
		t.out.say("trial %d: %s%s, %d steps in %.3f s, AU %s, of reads alone %s: %s\n", number, textio.Plural(accelerators, "accelerator"), t.others.each(), r.steps, r.seconds,
			percent(r.au), percent(min(r.supply, 1)), map[bool]string{true: "met", false: "missed"}[met])
		s.add(accelerators, met, confirming)
	}
	if s.met > 0 || s.missed > 0 {
		t.out.keep(s.met)
	}
	t.out.say("%s%s\n", s.answer(ctx.Err() == nil, percent(t.model.threshold)), t.others.each())
	return nil
}

// search chooses the numbers of accelerators to try.
type search struct {
	most      int
	met       int // the largest number that reached the threshold
	missed    int // the smallest that did not, 0: none
	confirmed bool
}

// next is the number to try, 0 at the end, and whether it was tried before.
func (s *search) next() (accelerators int, confirming bool) {
	upper := s.missed
	if upper == 0 {
		upper = s.most + 1
	}
	switch {
	case s.missed == 0 && s.met < s.most:
		return min(max(1, 2*s.met), s.most), false
	case upper-s.met > 1:
		return (s.met + upper) / 2, false
	case s.met > 0 && !s.confirmed:
		return s.met, true
	}
	return 0, false
}

func (s *search) add(accelerators int, met, confirming bool) {
	switch {
	case met && confirming:
		s.confirmed = true
	case met:
		s.met = max(s.met, accelerators)
	default:
		s.missed = accelerators
		if confirming {
			s.met = accelerators - 1 // which was not tried, so that it is confirmed next
		}
	}
}

// answer is the result in words.
func (s *search) answer(complete bool, threshold string) string {
	switch {
	case !complete || !s.confirmed && s.met > 0:
		return fmt.Sprintf("not decided: %s reached AU %s once, and the load ended before the search", textio.Plural(s.met, "accelerator"), threshold)
	case s.met == 0:
		return "one accelerator does not reach AU " + threshold
	case s.missed == 0:
		return fmt.Sprintf("%d accelerators reach AU %s, the most that were tried", s.met, threshold)
	}
	return fmt.Sprintf("the largest number of accelerators with AU %s is %d", threshold, s.met)
}
