package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// plan describes a load or a prefill.
func (c *config) plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: c.engine(), InMemory: true, BytesWritten: -1, Program: &load.ProgramPlan{Needs: c.needs()}}
	data := database.Data{Text: fmt.Sprintf("%d keys with values of %s", c.keys, unit.FormatBytes(int64(c.valueBytes))), Bytes: c.dataBytes(c.keys),
		FullBytes: c.dataBytes(c.fullKeys), Names: "all keys of its database"}
	log := database.Log{Name: "snapshot and append-only file", Bytes: 2*c.dataBytes(c.keys) + rewriteLeast, Setting: "number of keys", Scaled: c.keys < c.fullKeys}
	if err := c.place.Plan(w, &p, data, log); err != nil {
		return p, err
	}
	run := c.planned()
	var list []program.Command
	if c.place.Endpoint == "" {
		list = append(list, run.server())
	}
	if w.Prefill {
		list = append(list, run.ask())
		p.BytesWritten = 2 * c.dataBytes(c.keys)
	} else {
		for i, command := range c.commands {
			list = append(list, run.round(command, c.least()))
			p.Jobs = append(p.Jobs, load.JobPlan{Name: command, Pattern: "commands", QueueDepth: c.clients * c.pipeline, DepthAsked: c.clients * c.pipeline, Clones: 1,
				Writes: writes(command), Flushes: writes(command) && c.waits(), Memory: !c.appends() || !writes(command), Shares: i > 0})
		}
	}
	for _, command := range list {
		p.Program.Commands = append(p.Program.Commands, command.String())
	}
	if !w.Prefill {
		c.advise(&p)
	}
	return p, nil
}

// rewriteLeast is the size from which Redis rewrites an append-only file.
const rewriteLeast = 64 * unit.MiB

// advise notes what the numbers of a load are not.
func (c *config) advise(p *load.Plan) {
	if c.place.Endpoint == "" {
		p.Notes = append(p.Notes, "the clients run on the VM of the server and share its CPUs")
	} else {
		p.Notes = append(p.Notes, "clients reach the endpoint by a socket of the agent, which passes commands on so that no argument list has an address or a password; the report has its cost")
	}
	p.Notes = append(p.Notes,
		"redis-benchmark runs in rounds of about half an interval, with -n as its last round suggests: starting them costs a few milliseconds each")
	if text := c.noStorage(); text != "" {
		p.Notes = append(p.Notes, text)
	}
	if len(c.commands) > 1 {
		p.Notes = append(p.Notes, "rounds execute "+strings.Join(c.commands, ", ")+" in turn, not mixed")
	}
}

// noStorage says why the latencies of a load are not those of storage, "" if they are.
func (c *config) noStorage() string {
	switch {
	case c.place.Endpoint != "":
		return "whether commands wait for a disk is up to the server of the endpoint, whose settings are not known here"
	case !slices.ContainsFunc(c.commands, writes):
		return "the server reads from memory only: no storage is measured"
	case !c.appends():
		return "without appendonly: yes the server keeps its data in memory only: no storage is measured"
	case !c.waits():
		return "without appendfsync: always commands do not wait for the disk: their latencies are not those of storage, unless it falls behind"
	}
	return ""
}

// commands makes the commands of a server and its clients, for a plan and for a run.
type commands struct {
	*config
	paths  map[string]string        // of programs; empty in a plan
	folder func(disk string) string // as clients see it
	own    func(disk string) string // as the server sees it
}

func (c *config) planned() commands {
	same := func(disk string) string { return disk }
	return commands{config: c, folder: same, own: same}
}

func (k commands) command(name string, args ...string) program.Command {
	path := name
	if found, is := k.paths[name]; is {
		path = found
	}
	return program.Command{Path: path, Args: args}
}

func (k commands) socket() string { return k.folder(k.place.Disk) + "/run/socket" }

// server is the server: on a socket in a folder that only its user may enter, without a port and without snapshots of its own.
func (k commands) server() program.Command {
	at := k.own(k.place.Disk)
	args := []string{"--port", "0", "--unixsocket", at + "/run/socket", "--dir", at + "/data", "--save", "", "--daemonize", "no",
		"--maxclients", strconv.Itoa(k.clients + connectionSpare)}
	for _, s := range k.settings {
		value := s.Value
		if s.Name == "maxmemory" {
			bytes, _ := unit.ParseBytes(value) // it was checked
			value = strconv.FormatInt(bytes, 10)
		}
		args = append(args, "--"+strings.ReplaceAll(s.Name, "_", "-"), value)
	}
	c := k.command("redis-server", args...)
	c.Alone = true // its forks, which rewrite files, end with it
	return c
}

// ask executes words, or the lines of its standard input.
func (k commands) ask(words ...string) program.Command {
	return k.command("redis-cli", append([]string{"-e", "-s", k.socket()}, words...)...)
}

// least is the smallest number of requests of a round: a whole number of pipelines, and some for every client.
func (c *config) least() int { return 4 * c.clients * c.pipeline }

// round executes a command a number of times.
func (k commands) round(command string, requests int) program.Command {
	args := []string{"-s", k.socket(), "-t", command, "-c", strconv.Itoa(k.clients), "-P", strconv.Itoa(k.pipeline), "-d", strconv.Itoa(k.valueBytes),
		"-r", strconv.Itoa(k.keys), "-n", strconv.Itoa(requests), "--precision", "3"}
	if k.threads > 1 {
		args = append(args, "--threads", strconv.Itoa(k.threads))
	}
	return k.command("redis-benchmark", args...)
}

// describe completes the engine of a load by its server.
func (k commands) describe(e *interval.Engine, version string) {
	e.Backends = []string{"Redis " + version}
	if text := k.noStorage(); text != "" {
		code := noteNoStorage
		if k.place.Endpoint != "" {
			code = noteUnknownStorage
		}
		e.Notes = append(e.Notes, interval.EngineNote{Code: code, Text: text})
	}
}

// Notes on what latencies are not: those of storage, or known to be.
const (
	noteNoStorage      interval.NoteCode = "memory-only"
	noteUnknownStorage interval.NoteCode = "storage-unknown"
)
