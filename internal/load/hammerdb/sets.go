package hammerdb

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// Query is one query that HammerDB reports.
type Query struct {
	Number int // from 1 to 22
	Time   time.Duration
}

// QuerySet is one set of queries of one user.
type QuerySet struct {
	User, Number int
	Wall         time.Duration // in whole seconds
	Queries      []Query       // in the order in which they ended
	// Mean is the geometric mean of the times in seconds, of the queries that returned rows, as HammerDB states it; 0 if it does not.
	Mean     float64
	Returned int
}

// Sets reads the output of TPROC-H. Its zero value is ready.
type Sets struct {
	Done []QuerySet // in the order in which they ended
	open map[int]*QuerySet
}

var (
	queryPattern = regexp.MustCompile(`^Vuser (\d{1,5}):query (\d{1,2}) completed in (\d{1,9}(?:\.\d{1,9})?) seconds$`)
	setPattern   = regexp.MustCompile(`^Vuser (\d{1,5}):Completed (\d{1,9}) query set\(s\) in (\d{1,9}) seconds$`)
	meanPattern  = regexp.MustCompile(`^Vuser (\d{1,5}):Geometric mean of query times returning rows \((\d{1,2})\) is (\d{1,9}(?:\.\d{1,9})?)$`)
)

// Line reads a line without its line feed, and returns the query that it completes, and the set of which it says more.
func (s *Sets) Line(line string) (*Query, *QuerySet) {
	if s.open == nil {
		s.open = map[int]*QuerySet{}
	}
	line = strings.Trim(line, "\r") // as in Output
	if m := queryPattern.FindStringSubmatch(line); m != nil {
		return s.query(int(number(m[1])), int(number(m[2])), m[3]), nil
	} else if m := setPattern.FindStringSubmatch(line); m != nil {
		return nil, s.end(int(number(m[1])), int(number(m[2])), time.Duration(number(m[3]))*time.Second)
	} else if m := meanPattern.FindStringSubmatch(line); m != nil {
		return nil, s.mean(int(number(m[1])), int(number(m[2])), m[3])
	}
	return nil, nil
}

func (s *Sets) set(user int) *QuerySet {
	if s.open[user] == nil {
		s.open[user] = &QuerySet{User: user}
	}
	return s.open[user]
}

func (s *Sets) query(user, n int, seconds string) *Query {
	value, _ := strconv.ParseFloat(seconds, 64) // of digits that the pattern has bounded
	q := Query{Number: n, Time: time.Duration(math.Round(value * float64(time.Second)))}
	set := s.set(user)
	if n < 1 || n > queryCount || len(set.Queries) > queryCount {
		return nil
	}
	set.Queries = append(set.Queries, q)
	return &q
}

func (s *Sets) end(user, n int, wall time.Duration) *QuerySet {
	set := s.set(user)
	set.Number, set.Wall = n, wall
	s.Done = append(s.Done, *set)
	delete(s.open, user)
	return set
}

// mean belongs to the last set of a user.
func (s *Sets) mean(user, returned int, text string) *QuerySet {
	for i := len(s.Done) - 1; i >= 0; i-- {
		if set := &s.Done[i]; set.User == user {
			set.Mean, _ = strconv.ParseFloat(text, 64)
			set.Returned = returned
			return set
		}
	}
	return nil
}

// GeometricMean is that of the times of all queries, in seconds; NaN without one.
func (q *QuerySet) GeometricMean() float64 {
	sum := 0.0
	for _, query := range q.Queries {
		sum += math.Log(query.Time.Seconds())
	}
	return math.Exp(sum / float64(len(q.Queries)))
}

// Stated is the geometric mean that HammerDB states, or else that of all queries.
func (q *QuerySet) Stated() float64 {
	if q.Returned > 0 {
		return q.Mean
	}
	return q.GeometricMean()
}

// Tolerances: HammerDB prints times in milliseconds, means with five digits, and takes the time of a set in whole seconds.
const (
	meanTolerance = 1e-5
	wallTolerance = time.Second + queryCount*time.Millisecond
)

// Check holds what HammerDB says of a set against the queries that it reported in it.
func (q *QuerySet) Check() error {
	var sum time.Duration
	seen := map[int]bool{}
	for _, query := range q.Queries {
		sum += query.Time
		seen[query.Number] = true
	}
	own := q.GeometricMean()
	switch {
	case len(q.Queries) != queryCount || len(seen) != queryCount:
		return fmt.Errorf("set %d of user %d has %d queries, %d of them different ones, want %d", q.Number, q.User, len(q.Queries), len(seen), queryCount)
	case sum > q.Wall+wallTolerance:
		return program.TotalsDiffer("the queries of set %d of user %d took %v, and HammerDB reports %v for all", q.Number, q.User, sum, q.Wall)
	case q.Returned == queryCount && math.Abs(own-q.Mean) > meanTolerance:
		return program.TotalsDiffer("the geometric mean of set %d of user %d is %.5f s, and HammerDB reports %.5f s", q.Number, q.User, own, q.Mean)
	}
	return nil
}
