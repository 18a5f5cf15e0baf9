package pgbench

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// Bounds of the numbers in a line, so that sums do not overflow.
const (
	microsMax = int64(math.MaxInt64) / 4 / int64(time.Microsecond)
	unixMax   = int64(math.MaxInt64) / 4 / int64(time.Second)
)

// parseTransaction reads one line without its end, and returns the number of the client. The Kind of the transaction is the number of the script,
// its End is Unix time.
//
//	client transaction latency|skipped|failed|serialization|deadlock script seconds microseconds [lag, with a rate] [retries]
func parseTransaction(line []byte, rated bool) (client int, t program.Operation, err error) {
	fields := bytes.Fields(line)
	want := 6
	if rated {
		want = 7
	}
	if len(fields) < want || len(fields) > want+1 {
		return 0, t, fmt.Errorf("%d fields, want %d: %.80q", len(fields), want, line)
	}
	number := func(i int, most int64) (n int64) {
		if err != nil {
			return 0
		}
		n, err = strconv.ParseInt(string(fields[i]), 10, 64)
		if err == nil && (n < 0 || n > most) {
			err = strconv.ErrRange
		}
		if err != nil {
			err = fmt.Errorf("field %d: %w: %.80q", i+1, err, line)
		}
		return n
	}
	client = int(number(0, math.MaxInt32))
	number(1, math.MaxInt64)
	switch outcome := string(fields[2]); outcome {
	case "skipped":
		t.Skipped = true
	case "failed", "serialization", "deadlock":
		t.Failed = outcome
	default:
		t.Latency = number(2, microsMax) * int64(time.Microsecond)
	}
	t.Kind = int(number(3, math.MaxInt16))
	t.End = number(4, unixMax)*int64(time.Second) + number(5, int64(time.Second/time.Microsecond)-1)*int64(time.Microsecond)
	if rated {
		t.Lag = min(number(6, microsMax)*int64(time.Microsecond), t.Latency)
	}
	return client, t, err
}
