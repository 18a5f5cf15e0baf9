package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// calibrationIOPSMax is where calibration stops to push: a third of it two cores of a virtual machine drive without waits for a
// CPU (at 6,600 a second they had them in 9 to 40 % of the intervals, at 3,300 in none), and what the demo writes stays below 1 GiB.
const calibrationIOPSMax = 10_000

// What calibration runs, on files of its own: the two loads of the demo's scenario as fast as the storage goes, one after the
// other, and then both together at a share of that, as the scenario has them. To fill in are times and rates.
const (
	calibrationFiles = `
[global]
ioengine=libaio
direct=1
time_based
norandommap
size=64M
`
	calibrationDatabase = `
[global]
runtime=%s
bs=8k
iodepth=16
rw=randrw
rate_process=poisson
rate_iops=%d,%d
[data1]
filename=data1
[data2]
filename=data2
`
	calibrationNeighbor = `
[neighbor]
filename=data1
runtime=%s
bs=1m
iodepth=8
rw=read
rate_process=poisson
rate_iops=%d,0
`
	calibrationAlone  = "1500ms"
	calibrationBeside = "1s"
	calibrationTrial  = "500ms" // a period over which the generator says whether it had CPU time enough
)

const (
	calibrationReadsMax = 4000 // of 1 MiB a second, the neighbor's bound
	demoRateMin         = 10   // the least rate of each load
)

// demoShares are the parts of what the storage can do that the demo's database asks for: the first at which the load has CPU time
// enough. Every operation wakes a thread, and a virtual machine may wake so late that a third is too much for it. The neighbor's
// operations are few: half of the bandwidth shows beside the database.
var demoShares = []struct {
	part int64
	name string
}{{3, "a third"}, {6, "a sixth"}, {12, "a twelfth"}}

const demoNeighborPart = 2

// demoRates are the rates of the demo's scenario.
type demoRates struct {
	database int64 // operations a second
	neighbor int64 // MiB a second
}

// calibrated is what the storage did.
type calibrated struct {
	iops, p99 float64 // of the database alone; a second, nanoseconds
	readBytes float64 // of the neighbor alone, a second
}

func (c *calibrated) share(part int64) demoRates {
	return demoRates{
		database: max(demoRateMin, int64(c.iops)/part/10*10),
		neighbor: max(demoRateMin, int64(c.readBytes)/unit.MiB/demoNeighborPart/10*10),
	}
}

// calibrateDemo measures, in files of its own that it removes, what the storage below dir does, and returns what the demo asks
// of it: a third, or less where this machine cannot drive that. Progress goes to out.
func calibrateDemo(ctx context.Context, p *console.Process, out io.Writer, dir string) (rates demoRates, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return rates, err
	}
	scratch, err := os.MkdirTemp(dir, ".calibration-")
	if err != nil {
		return rates, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	stop, end := p.WatchSignals(ctx, p.Saying("stopping"))
	defer end()
	fmt.Fprintf(out, "calibrating: 5 s of random 8 KiB reads and writes and 1 MiB reads in %s\n", textio.Lines(dir))
	c, err := calibrate(stop.Begun, scratch)
	var share string
	if err == nil {
		rates, share, err = chooseRates(stop.Begun, scratch, c)
	}
	if stop.Stopped() {
		return rates, &diag.Error{Code: "stopped", Message: "interrupted during calibration", Exit: diag.ExitInterrupted}
	}
	if err != nil {
		return rates, &diag.Error{Code: "calibration", Err: err, Message: "calibrate storage of " + strconv.Quote(dir),
			Hint: "choose a folder on another file system: bragg demo --runs DIR", Exit: diag.ExitUnavailable}
	}
	least := ""
	if c.iops > 0.95*calibrationIOPSMax {
		least = "at least "
	}
	fmt.Fprintf(out, "calibrated:  %s%s IOPS, p99 %s; reads of %s\n", least, unit.FormatCount(c.iops), unit.FormatLatency(c.p99),
		unit.FormatRate(c.readBytes))
	fmt.Fprintf(out, "load:        database %d IOPS (%s), neighbor %s (half)\n\n", rates.database, share,
		unit.FormatRate(float64(rates.neighbor*unit.MiB)))
	return rates, nil
}

func calibrate(ctx context.Context, scratch string) (*calibrated, error) {
	database, err := runCalibration(ctx, scratch, databaseAt(calibrationAlone, calibrationIOPSMax))
	if err != nil {
		return nil, err
	}
	neighbor, err := runCalibration(ctx, scratch, fmt.Sprintf(calibrationNeighbor, calibrationBeside, calibrationReadsMax))
	if err != nil {
		return nil, err
	}
	c := &calibrated{}
	for _, row := range database.Rows {
		for _, d := range row.Directions {
			c.iops += d.PerSecond(d.Operations)
			if d.Operations > 0 {
				c.p99 = max(c.p99, d.Service.Quantile(0.99))
			}
		}
	}
	reads := &neighbor.Rows[0].Directions[interval.Read]
	c.readBytes = reads.PerSecond(reads.Bytes)
	return c, nil
}

// databaseAt is the load of the database for some time, at operations a second: two disks, nine reads for each write.
func databaseAt(runtime string, iops int64) string {
	return fmt.Sprintf(calibrationDatabase, runtime, max(1, iops*9/20), max(1, iops/20))
}

// chooseRates tries both loads together, with less and less of the database, until they have CPU time enough. Where they never have,
// less helps nothing: it is a third, and the run says that its numbers are doubtful.
func chooseRates(ctx context.Context, scratch string, c *calibrated) (rates demoRates, share string, err error) {
	for _, s := range demoShares {
		rates, share = c.share(s.part), s.name
		report, err := runCalibration(ctx, scratch, databaseAt(calibrationTrial, rates.database)+
			fmt.Sprintf(calibrationNeighbor, calibrationTrial, rates.neighbor))
		if err != nil {
			return rates, share, err
		}
		starved := 0
		for _, row := range report.Rows {
			starved += row.Strain.Starved
		}
		if starved == 0 {
			return rates, share, nil
		}
	}
	return c.share(demoShares[0].part), demoShares[0].name + " (CPU-starved at lower rates too)", nil
}

// runCalibration runs jobs on the files of the scratch folder. What is late is dropped: the rate is a bound.
func runCalibration(ctx context.Context, scratch, jobs string) (*fioreport.Report, error) {
	file, issues := fiojob.Parse("calibration", calibrationFiles+jobs, fiojob.Options{})
	if err := issues.Err(); err != nil {
		return nil, err
	}
	report, err := iojob.Run(ctx, file.Jobs(), iojob.Options{Folder: scratch, DropAfter: time.Millisecond})
	if err != nil {
		return nil, err
	}
	for _, row := range report.Rows {
		if row.Err != nil {
			return nil, row.Err
		}
	}
	return report, nil
}
