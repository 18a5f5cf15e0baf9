package own

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/load/vdbench/output"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/unit"
)

// counts are the rows of flatfile.html as operations of the load. vdbench 5.04.05 writes them in pieces long after their time, so that each
// row counts in the second that it is of.
type counts struct {
	own  *File
	path string // of vdbench's output
	axis program.Axis
	out  *program.Recorder

	table  output.Table
	part   string // a line that is not complete
	offset int64
	last   int64 // when the row before ended
	run    string
	runs   int // that have begun
}

// heldMost is how long an interval waits for its row: the pieces of 5.04.05 are of 8 KiB, which are up to 22 seconds.
const heldMost = 30 * time.Second

// known is the time until which all rows are read, or no longer waited for.
func (c *counts) known() int64 {
	return min(c.axis.Now(), max(c.last, c.axis.Now()-int64(heldMost)))
}

// read counts the complete rows that flatfile.html has more than before.
func (c *counts) read() error {
	f, err := os.Open(filepath.Join(c.path, "flatfile.html"))
	if err != nil {
		return nil // not yet
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, c.offset, readMax))
	if err != nil {
		return err
	}
	c.offset += int64(len(text))
	lines := strings.Split(c.part+string(text), "\n")
	c.part = lines[len(lines)-1]
	if len(c.part) > readMax {
		return errors.New("read flatfile: a line without an end")
	}
	for _, line := range lines[:len(lines)-1] {
		r, is, err := c.table.Line(line)
		if err != nil {
			return err
		}
		if is {
			c.row(&r)
		}
	}
	return nil
}

// formatPrefix begins the names of runs that vdbench inserts to make files.
const formatPrefix = "format_for_"

// row counts one second of a run. A run of which the file has another interval 1 is a new one, of the next value of a loop.
func (c *counts) row(r *output.Row) {
	if r.Average || strings.HasPrefix(r.Run, formatPrefix) {
		return
	}
	if r.Run != c.run || r.Interval == 1 {
		c.run = r.Run
		c.runs++
	}
	at := c.axis.Now()
	if stamp := c.axis.Of(r.At); !r.At.IsZero() && stamp > c.last && stamp < at { // unless the clock was set meanwhile
		at = stamp
	}
	from := max(c.last, at-int64(time.Second))
	for kind, t := range c.traffic(r) {
		c.out.Spread(kind, from, at, whole(t.operations), whole(t.bytes))
	}
	c.out.Gauge(interval.GaugeValues{float64(c.runs)}, at-1)
	c.last = at
}

// moved is what one kind of operations did.
type moved struct{ operations, bytes float64 }

// traffic is what a row counts, by kinds of operations. Rates are those of a second.
func (c *counts) traffic(r *output.Row) []moved {
	if c.own.disk != "" {
		all := []moved{{r.Rates["read"], inSectors(r.ReadMebibytes)}, {r.Rates["write"], inSectors(r.WriteMebibytes)}}
		for _, kind := range c.own.others {
			all = append(all, moved{operations: r.Rates[kind]})
		}
		return all
	}
	reads := r.ReadPercent / 100
	if math.IsNaN(reads) {
		reads = 1
	}
	n := math.Round(r.Rate * reads)
	bytes := inSectors(r.Mebibytes)
	if share := n / r.Rate; share >= 0 { // not of a second without operations
		return []moved{{n, bytes * share}, {r.Rate - n, bytes * (1 - share)}}
	}
	return nil
}

// inSectors are whole sectors of what vdbench states to about 52 bytes.
func inSectors(mebibytes float64) float64 {
	return math.Round(mebibytes*float64(unit.MiB)/sector) * sector
}

const sector = 512 // transfers are multiples of it, but for the ends of files of other sizes

// whole rounds what is to be counted. What is not a number counts nothing.
func whole(v float64) uint64 {
	if v > 0 && v < math.MaxInt64 {
		return uint64(math.Round(v))
	}
	return 0
}

// latencies are those of the load, from the histograms of its runs.
func (c *counts) latencies() error {
	text, err := os.ReadFile(filepath.Join(c.path, "histogram.html"))
	if err != nil || len(text) > resultMax {
		return nil // the note says that latencies may be unknown
	}
	all, err := output.Histograms(string(text))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d output.Distribution) bool { return strings.HasPrefix(d.Run, formatPrefix) })
	if c.own.disk != "" {
		if kind, one := c.own.oneKind(); one {
			c.merge(kind, all, func(d *output.Distribution) output.Buckets { return d.All })
		}
		return nil
	}
	c.merge(0, all, func(d *output.Distribution) output.Buckets { return d.Reads })
	c.merge(1, all, func(d *output.Distribution) output.Buckets { return d.Writes })
	return nil
}

func (c *counts) merge(kind int, all []output.Distribution, of func(*output.Distribution) output.Buckets) {
	sum := &stat.Histogram{}
	for i := range all {
		h, _ := of(&all[i]).Histogram(0)
		sum.Merge(h)
	}
	if sum.Count() > 0 {
		c.out.Latencies(kind, sum)
	}
}
