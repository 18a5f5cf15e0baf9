package hammerdb

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Profile is the time profile of one virtual user.
type Profile struct {
	User       int
	Elapsed    time.Duration
	Procedures []Procedure
}

// Procedure has the latencies of one kind of transaction of a user.
type Procedure struct {
	Name                  string // "NEWORD"
	Calls                 uint64
	Min, Mean, Max, Total time.Duration
	P50, P95, P99         time.Duration
	StandardDeviation     time.Duration
	// Sampled is set if the percentiles and the standard deviation are those of a random sample of the calls, as from version 6.0 on.
	Sampled bool
}

// sampleLeast is the smallest sample that HammerDB 6.0 can be configured to take of the calls of a procedure, and its default.
const sampleLeast = 10_000

const milliseconds = `(\d{1,12}\.\d{1,6})ms`

var (
	userPattern      = regexp.MustCompile(`^>>>>> VIRTUAL USER (\d{1,6}) : ELAPSED TIME : (\d{1,12})ms$`)
	summaryPattern   = regexp.MustCompile(`^>>>>> SUMMARY OF \d+ ACTIVE VIRTUAL USERS :`)
	procedurePattern = regexp.MustCompile(`^>>>>> PROC: (\w{1,40})$`)
	callsPattern     = regexp.MustCompile(`^CALLS: (\d{1,15})\tMIN: ` + milliseconds + `\tAVG: ` + milliseconds + `\tMAX: ` + milliseconds + `\tTOTAL: ` + milliseconds + `$`)
	// Version 6.0 has two more percentiles, and states the unit of the standard deviation.
	sharesPattern  = regexp.MustCompile(`^P99: ` + milliseconds + `\tP95: ` + milliseconds + `\t(P75: [\d.]{1,20}ms\t)?P50: ` + milliseconds + `\t(?:P25: [\d.]{1,20}ms\t)?SD: (\d{1,15}\.\d{1,6})(ms)?\tRATIO: \d+\.\d+%$`)
	profilePattern = regexp.MustCompile(`^.{1,40} Hammerdb Time Profile Report @ `)
)

// profileReader is the place in a time profile.
type profileReader struct {
	users    []Profile
	inUser   bool // else in a summary, or before the first user
	complete bool // the report has its summary
	half     bool // of the last procedure, the percentiles are missing
}

// ParseProfile reads the last report of a time profile: HammerDB appends to its file. The report must reach its summary, whose own
// numbers are left out: CALLS and TOTAL of version 4.12 are twice those of its users.
//
// Versions 4.12 to 6.0 are known. Version 6.0 keeps a random sample of the times of each procedure, from which it calculates percentiles and
// standard deviation; calls, minimum, mean, maximum and total are those of all calls.
func ParseProfile(text string) ([]Profile, error) {
	var r profileReader
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		if err := r.line(strings.TrimSuffix(line, "\r")); err != nil {
			return nil, fmt.Errorf("read HammerDB's time profile: %w", err)
		}
	}
	if !r.complete || len(r.users) == 0 {
		return nil, errors.New("HammerDB's time profile is incomplete")
	}
	return r.users, nil
}

func (r *profileReader) line(line string) error {
	if profilePattern.MatchString(line) {
		*r = profileReader{}
		return nil
	}
	if m := userPattern.FindStringSubmatch(line); m != nil {
		r.users = append(r.users, Profile{User: int(number(m[1])), Elapsed: time.Duration(number(m[2])) * time.Millisecond})
		r.inUser = true
		return r.whole()
	}
	if summaryPattern.MatchString(line) {
		r.inUser, r.complete = false, true
		return r.whole()
	}
	if !r.inUser {
		return nil
	}
	return r.procedureLine(line)
}

// whole refuses a procedure whose lines are not all there.
func (r *profileReader) whole() error {
	if r.half {
		return errors.New("a procedure lacks its numbers")
	}
	return nil
}

// procedureLine reads one of the three lines of a procedure of the last user.
func (r *profileReader) procedureLine(line string) error {
	user := &r.users[len(r.users)-1]
	if m := procedurePattern.FindStringSubmatch(line); m != nil {
		err := r.whole()
		user.Procedures, r.half = append(user.Procedures, Procedure{Name: m[1]}), true
		return err
	}
	calls, shares := callsPattern.FindStringSubmatch(line), sharesPattern.FindStringSubmatch(line)
	if calls == nil && shares == nil {
		return nil
	}
	if !r.half {
		return errors.New("numbers without a procedure")
	}
	p := &user.Procedures[len(user.Procedures)-1]
	if calls != nil {
		p.Calls, p.Min, p.Mean, p.Max, p.Total = number(calls[1]), millis(calls[2]), millis(calls[3]), millis(calls[4]), millis(calls[5])
		return nil
	}
	p.P99, p.P95, p.P50, p.StandardDeviation = millis(shares[1]), millis(shares[2]), millis(shares[4]), millis(shares[5])
	if shares[6] == "" { // without a unit, it is in microseconds
		p.StandardDeviation /= 1000
	}
	p.Sampled = shares[3] != "" && p.Calls > sampleLeast
	r.half = p.Calls == 0
	return r.whole()
}

// millis reads a number of milliseconds that a pattern has bounded.
func millis(text string) time.Duration {
	ms, _ := strconv.ParseFloat(text, 64)
	return time.Duration(ms*1e6 + 0.5)
}
