package iolog

import "sort"

// Schedule counts how many reads, writes and trims of a log are due by a given time. It keeps few marks for a log of any
// length, and interpolates between them.
type Schedule struct {
	marks []mark
	total int64
	every int64 // operations between two marks
}

type mark struct{ nanos, count int64 }

// marksMax bounds the marks; when it is reached, half of them are dropped.
const marksMax = 1 << 14

func (s *Schedule) add(nanos int64) {
	s.total++
	if s.every == 0 {
		s.every = 1
	}
	if s.total%s.every != 0 {
		return
	}
	if len(s.marks) == marksMax {
		for i := range marksMax / 2 {
			s.marks[i] = s.marks[2*i+1]
		}
		s.marks = s.marks[:marksMax/2]
		s.every *= 2
		if s.total%s.every != 0 {
			return
		}
	}
	s.marks = append(s.marks, mark{nanos, s.total})
}

// Total is the number of operations.
func (s *Schedule) Total() int64 { return s.total }

// DueBefore returns how many operations are due before a time, in nanoseconds from the log's first operation. It is exact
// for logs of up to marksMax operations.
func (s *Schedule) DueBefore(nanos int64) int64 {
	// The first mark that is not due.
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].nanos >= nanos })
	before := mark{}
	if i > 0 {
		before = s.marks[i-1]
	}
	if i == len(s.marks) {
		return s.total
	}
	after := s.marks[i]
	gap := after.nanos - before.nanos
	if gap <= 0 || s.every <= 1 {
		return before.count
	}
	share := float64(nanos-before.nanos) / float64(gap)
	return before.count + int64(share*float64(after.count-before.count))
}
