package hammerdb

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Output is what one call of hammerdbcli printed.
type Output struct {
	Result    *Result  // nil without a timed test
	Counter   []Count  // of the transaction counter, in order
	Succeeded int      // users that ended with success
	Failed    int      // users that ended with a failure
	Errors    []string // of users, at most errorsMax
	// FailedCalls are transactions that failed. HammerDB only prints a line for each, and its time profile counts them as others.
	FailedCalls int
	Complete    bool // all users ended
}

// Result is that of a timed TPROC-C test.
type Result struct {
	NOPM, TPM uint64 // new orders, and transactions as the database counts them, per minute
	Database  string // "PostgreSQL", as HammerDB names it
}

// Count is a value of the transaction counter.
type Count struct {
	TPM      uint64
	Database string
}

const errorsMax = 20

var (
	resultPattern = regexp.MustCompile(`^Vuser \d+:TEST RESULT : System achieved (\d{1,15}) NOPM from (\d{1,15}) (.{1,40}) TPM$`)
	countPattern  = regexp.MustCompile(`^(\d{1,15}) (.{1,40}) tpm$`)
	endPattern    = regexp.MustCompile(`^Vuser \d+:FINISHED (SUCCESS|FAILED)$`)
	callPattern   = regexp.MustCompile(`^Vuser \d+:.{1,40} Procedure Error\b`)
	errorPattern  = regexp.MustCompile(`^Error in Virtual User \d+: (.*)$`)
)

// completeLine is printed once all users have ended.
const completeLine = "ALL VIRTUAL USERS COMPLETE"

// ParseOutput reads the output of hammerdbcli. A last line without a line feed is left out, because its numbers may be cut.
func ParseOutput(text string) (o Output, err error) {
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		if err := o.line(line); err != nil {
			return o, err
		}
	}
	return o, nil
}

// line reads one line, without its line feed.
func (o *Output) line(line string) error {
	line = strings.Trim(line, "\r") // the command line begins lines with it, to return over its prompt
	if m := resultPattern.FindStringSubmatch(line); m != nil {
		if o.Result != nil {
			return errors.New("HammerDB printed two results")
		}
		o.Result = &Result{NOPM: number(m[1]), TPM: number(m[2]), Database: m[3]}
	} else if m := countPattern.FindStringSubmatch(line); m != nil {
		o.Counter = append(o.Counter, Count{number(m[1]), m[2]})
	} else if m := endPattern.FindStringSubmatch(line); m != nil && m[1] == "SUCCESS" {
		o.Succeeded++
	} else if m != nil {
		o.Failed++
	} else if callPattern.MatchString(line) {
		o.FailedCalls++
	} else if m := errorPattern.FindStringSubmatch(line); m != nil && len(o.Errors) < errorsMax {
		o.Errors = append(o.Errors, m[1])
	} else if line == completeLine {
		o.Complete = true
	}
	return nil
}

// number reads digits that a pattern has bounded.
func number(digits string) uint64 {
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}

var errIncomplete = errors.New("HammerDB: its output ends before all users did")

// Err is why a call failed, nil if all of its users ended with success and a test had new orders.
func (o *Output) Err() error {
	switch {
	case o.Failed > 0 || len(o.Errors) > 0:
		return fmt.Errorf("HammerDB: %d users failed: %s", max(o.Failed, 1), strings.Join(o.Errors, "; "))
	case !o.Complete:
		return errIncomplete
	case o.Succeeded == 0:
		return errors.New("HammerDB: no user ended with success")
	case o.Result != nil && o.Result.NOPM == 0:
		return fmt.Errorf("HammerDB: no new order in the whole test, and %d transactions failed", o.FailedCalls)
	}
	return nil
}

// NewOrderShare is NOPM per TPM, 0 without transactions.
func (r *Result) NewOrderShare() float64 {
	if r.TPM == 0 {
		return 0
	}
	return float64(r.NOPM) / float64(r.TPM)
}
