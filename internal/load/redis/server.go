package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

// server is the Redis of one prepared load or prefill.
type server struct {
	commands
	database.Server
	tools map[string]program.Tool
	relay *relay // to an endpoint
	// serverVersion and relayed are what is known of an endpoint once it is reached.
	serverVersion, relayed string
}

// open finds programs and the place of the files. It starts nothing. The caller calls close, also after an error.
func (c *config) open(ctx context.Context, w *load.Workload, said *program.Transcript) (s *server, err error) {
	s = &server{Server: database.NewServer("redis-server", said, wrong), commands: commands{config: c, folder: program.RoomFolder, paths: map[string]string{}}}
	if s.tools, err = program.Find(ctx, c.needs(), folders...); err != nil {
		return s, err
	}
	for name, tool := range s.tools {
		s.paths[name] = tool.Path
	}
	if c.place.Endpoint != "" {
		return s, s.openEndpoint(w)
	}
	name := program.RoomName{Name: Name, Account: account, FileSystem: &c.place.FileSystem, Said: said}
	if s.Room, err = program.OpenRoom(w, name, c.place.Disk); err == nil {
		s.own = s.Room.MountedFolder
	}
	return s, err
}

// wrong finds the warnings in the server's log, "1:M 28 Nov 2026 13:04:05.678 # Write error …", as which it reports its errors.
func wrong(line string) bool { return strings.Contains(line, " # ") }

// complete adds what all commands of the load have: environment, account and the room.
func (s *server) complete(c program.Command) program.Command {
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	c = s.Room.Confine(c)
	if c.Alone {
		c = s.Room.Mounted(c)
	}
	return c
}

// query executes one command.
func (s *server) query(ctx context.Context, words ...string) (string, error) {
	out, err := s.complete(s.ask(words...)).Run(ctx)
	if err != nil {
		err = s.explain(err)
	}
	return strings.TrimSpace(out), err
}

// explain completes an error of a client: by the end of the server or of a connection to the endpoint, and without its settings.
func (s *server) explain(err error) error { return s.Explain(s.relay.explain(err)) }

// fillScript sets keys of a range to values of a length. Keys have the names that redis-benchmark uses.
const fillScript = `"for i=ARGV[1],ARGV[2] do redis.call('SET',string.format('key:%012d',i),string.rep('x',ARGV[3])) end return redis.status_reply('OK')"`

// fillBytes are the values that one script writes: other commands wait for its end.
const fillBytes = 8 * unit.MiB

// fill makes an empty server in place of the former one, with all keys, and writes them to the disk.
func (s *server) fill(ctx context.Context) error {
	if s.place.Endpoint != "" {
		return s.fillEndpoint(ctx)
	}
	disk := program.DiskFolder(s.place.Disk)
	if err := s.Room.Clear(disk); err != nil {
		return err
	}
	if err := s.Room.Make(disk + "/data"); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	if _, err := s.query(ctx, "SAVE"); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	s.stop()
	return nil
}

// write sets all keys.
func (s *server) write(ctx context.Context) error {
	var lines strings.Builder
	step := max(1, int(fillBytes/int64(s.valueBytes+keyOverhead)))
	for from := 0; from < s.keys; from += step {
		fmt.Fprintf(&lines, "EVAL %s 0 %d %d %d\n", fillScript, from, min(from+step, s.keys)-1, s.valueBytes)
	}
	ask := s.complete(s.ask())
	ask.Stdin = strings.NewReader(lines.String())
	out, err := ask.Run(ctx)
	if err != nil {
		return s.explain(fmt.Errorf("write keys: %w", err))
	}
	for line := range strings.Lines(out) { // redis-cli does not fail for a line of its input
		if line = strings.TrimSpace(line); line != "OK" && line != "" {
			return fmt.Errorf("write keys: the server says: %.200s", textio.Line(line))
		}
	}
	return s.checkKeys(ctx)
}

// up starts the server on the data of an earlier fill.
func (s *server) up(ctx context.Context) error {
	if s.place.Endpoint != "" {
		return s.upEndpoint(ctx)
	}
	if _, err := os.Stat(s.Room.Path(program.DiskFolder(s.place.Disk), "data/dump.rdb")); errors.Is(err, os.ErrNotExist) {
		return database.NoDatabase("disk %s has no data of Redis", s.place.Disk)
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.checkKeys(ctx)
}

// checkKeys makes sure that the server has at least the keys of the workload: earlier loads may have added some of their own.
func (s *server) checkKeys(ctx context.Context) error {
	text, err := s.query(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(text); err != nil || n < s.keys && database.Value(s.settings, "maxmemory") == "" {
		return database.NoDatabase("want %d keys %s, found %s: it was filled with other keys, or with another appendonly", s.keys, s.where(), text)
	}
	return nil
}

// start starts the server and waits until it has read its data. The socket of a killed one goes.
func (s *server) start(ctx context.Context) error {
	if err := s.Room.Clear(program.DiskFolder(s.place.Disk) + "/run"); err != nil {
		return err
	}
	return s.Start(ctx, s.complete(s.server()), s.complete(s.ask("DBSIZE"))) // an error while it reads
}

// stop ends the server, which writes its append-only file if it has one.
func (s *server) stop() { s.StopBy(syscall.SIGTERM) }

// executed is how often the server executed commands of the load so far, those of this load and of others.
func (s *server) executed(ctx context.Context) (sum uint64, err error) {
	text, err := s.query(ctx, "INFO", "commandstats")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		for _, name := range s.config.commands {
			rest, is := strings.CutPrefix(line, "cmdstat_"+name+":calls=")
			if !is {
				continue
			}
			number, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseUint(number, 10, 63)
			if err != nil {
				return 0, fmt.Errorf("counter of the server: %.80q", line)
			}
			sum += n
		}
	}
	return sum, nil
}

// close stops the server and lets other loads use its data.
func (s *server) close() error {
	if s == nil {
		return nil
	}
	s.stop()
	s.relay.close()
	return s.Release()
}
