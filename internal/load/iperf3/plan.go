package iperf3

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// engine describes a load on a VM with that many pairs.
func (c *config) engine(pairs int) interval.Engine {
	e := interval.Engine{Name: Name, Loop: interval.LoopClosed, Operations: []string{"sent", "received"}, Gauges: c.gauges(pairs)}
	if c.bitrate > 0 {
		e.Loop = interval.LoopPaced
	}
	return e
}

func (c *config) directions() int {
	if c.sends && c.receives {
		return 2
	}
	return 1
}

func (c *config) plan(w *load.Workload) load.Plan {
	pairs := max(1, len(w.Remote.Peers))
	p := load.Plan{Engine: c.engine(len(w.Remote.Peers)), Program: &load.ProgramPlan{Needs: needs}, Timed: w.Runtime > 0}
	tool := program.Tool{Path: Name}
	p.Program.Commands = append(p.Program.Commands, c.serve(tool, "ADDRESS", 0).String(),
		c.measure(tool, load.Peer{Address: "SERVER"}, w.Runtime, time.Second).String())
	job := load.JobPlan{Name: Name, Pattern: "streams", QueueDepth: c.streams * c.directions(), DepthAsked: c.streams * c.directions(), Clones: pairs}
	block := c.block
	if block == 0 && !c.udp {
		block = blockDefault // that of UDP depends on the path
	}
	if block > 0 {
		job.RateIOPS = float64(c.bitrate) / 8 / float64(block) * float64(job.QueueDepth*pairs)
	}
	p.Jobs = []load.JobPlan{job}
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	note("the port 0 stands for a free one, which the server reports")
	if whole := seconds(w.Runtime); w.Runtime > 0 && time.Duration(whole)*time.Second != w.Runtime {
		note("iperf3 measures whole seconds: %v becomes %d s", w.Runtime, whole)
	}
	return p
}

// blockDefault is iperf3's block of TCP.
const blockDefault = 128 << 10

// timeMax is the longest test of iperf3; longer ones are stopped.
const timeMax = 86400

// seconds is a runtime as iperf3 takes it: whole seconds, 0 for no end.
func seconds(runtime time.Duration) int {
	if n := math.Ceil(runtime.Seconds()); n <= timeMax {
		return int(n)
	}
	return 0
}

// serve is the command of a server.
func (c *config) serve(tool program.Tool, address string, port int) program.Command {
	command := program.Command{Path: tool.Path, Args: []string{"-s", "-p", strconv.Itoa(port), "--forceflush"}}
	if address != "" {
		command.Args = append(command.Args, "-B", address)
	}
	return command
}

// Bounds of -i.
const (
	intervalMin = 100 * time.Millisecond
	intervalMax = time.Minute
)

// measure is the command of a client.
func (c *config) measure(tool program.Tool, to load.Peer, runtime, period time.Duration) program.Command {
	args := []string{"-c", to.Address, "-p", strconv.Itoa(to.Port), "-P", strconv.Itoa(c.streams), "-t", strconv.Itoa(seconds(runtime)),
		"-i", strconv.FormatFloat(min(max(period, intervalMin), intervalMax).Seconds(), 'f', -1, 64)}
	add := func(when bool, words ...string) {
		if when {
			args = append(args, words...)
		}
	}
	add(c.sends && c.receives, "--bidir")
	add(c.receives && !c.sends, "-R")
	add(c.udp, "-u")
	add(c.bitrate > 0, "-b", strconv.FormatInt(c.bitrate, 10))
	add(c.block > 0, "-l", strconv.FormatInt(c.block, 10))
	add(c.window > 0, "-w", strconv.FormatInt(c.window, 10))
	add(c.congestion != "", "-C", c.congestion)
	add(c.zerocopy, "-Z")
	add(c.omit > 0, "-O", strconv.Itoa(int(c.omit/time.Second)))
	return program.Command{Path: tool.Path, Args: append(args, "-f", "k", "-V", "--debug=1", "--forceflush")}
}
