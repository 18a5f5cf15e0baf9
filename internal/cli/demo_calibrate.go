package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// calibrationIOPSMax is the maximum rate of calibration. Two cores of a virtual machine drive a third of it without waits for a
// CPU (at 6,600 per second, 9 to 40 % of the intervals had waits; at 3,300, none), and the demo writes less than 1 GiB.
const calibrationIOPSMax = 10_000

// The jobs of calibration, on separate files: the two loads of the demo's scenario at full speed, one after the other, and then
// both together at a share of that, as in the scenario. Times and rates are filled in.
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
	calibrationTrial  = "500ms" // a period over which the generator reports whether it had enough CPU time
)

const (
	calibrationReadsMax = 4000 // of 1 MiB a second, the neighbor's bound
	demoRateMin         = 10   // the minimum rate of each load
)

// demoShares are the shares of the storage's IOPS that the demo's database may request; the first at which the load has enough
// CPU time is used. Every operation wakes a thread, and a virtual machine may wake so late that a third is too much for it. The
// neighbor has few operations: half of the bandwidth has a visible effect on the database.
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

// calibrated is the measured performance of the storage.
type calibrated struct {
	iops, p99 float64 // of the database alone; per second, nanoseconds
	readBytes float64 // of the neighbor alone, per second
}

func (c *calibrated) share(part int64) demoRates {
	return demoRates{
		database: max(demoRateMin, int64(c.iops)/part/10*10),
		neighbor: max(demoRateMin, int64(c.readBytes)/unit.MiB/demoNeighborPart/10*10),
	}
}

// calibrateDemo measures the storage below dir, in temporary files, and returns the rates of the demo: a third of the measured
// ones, or less if this machine cannot drive that. Progress goes to out.
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

// databaseAt is the load of the database with a runtime and a rate in operations per second: two disks, nine reads for each
// write.
func databaseAt(runtime string, iops int64) string {
	return fmt.Sprintf(calibrationDatabase, runtime, max(1, iops*9/20), max(1, iops/20))
}

// chooseRates tries both loads together, with decreasing rates of the database, until they have enough CPU time. If no rate is
// low enough, it returns a third, and the run reports that its numbers are doubtful.
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

// runCalibration runs jobs on the files of the scratch folder. Late operations are dropped: the rate is a bound.
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
