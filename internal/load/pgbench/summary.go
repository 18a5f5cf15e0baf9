package pgbench

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// summary is what pgbench prints at its end.
type summary struct {
	processed uint64
	skipped   uint64
	failed    uint64
	aborted   bool
}

var (
	processedPattern = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)(?:/\d+)?$`)
	skippedPattern   = regexp.MustCompile(`(?m)^number of transactions skipped: (\d+) \([0-9.]+ ?%\)$`)
	failedPattern    = regexp.MustCompile(`(?m)^number of failed transactions: (\d+) \([0-9.]+ ?%\)$`)
)

// parseSummary reads pgbench's standard output. Its last line has the rate; without it the output is incomplete.
func parseSummary(text string) (s summary, err error) {
	whole := text
	if i := strings.Index(text, "\nSQL script 1:"); i >= 0 {
		whole = text[:i+1] // the numbers of each script follow
	}
	if i := strings.LastIndex(whole, "\ntps = "); i < 0 || !strings.Contains(whole[i+1:], "\n") {
		return s, errors.New("pgbench printed no summary")
	}
	number := func(p *regexp.Regexp) (n uint64, found bool) {
		m := p.FindStringSubmatch(whole)
		if m == nil || err != nil {
			return 0, false
		}
		if n, err = strconv.ParseUint(m[1], 10, 63); err != nil {
			err = fmt.Errorf("read pgbench's summary: %w", err)
		}
		return n, true
	}
	var found bool
	if s.processed, found = number(processedPattern); !found && err == nil {
		return s, errors.New("pgbench's summary has no number of transactions")
	}
	s.skipped, _ = number(skippedPattern)
	s.failed, _ = number(failedPattern)
	s.aborted = strings.Contains(whole, "Run was aborted")
	return s, err
}
