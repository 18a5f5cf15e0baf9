package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// openEndpoint reads the settings of the endpoint and makes the folder of its socket. It connects nothing.
func (s *server) openEndpoint(w *load.Workload) (err error) {
	if s.Endpoint, err = program.ReadEndpoint(s.place.Endpoint); err != nil {
		return err
	}
	if s.relay, err = newRelay(s.Endpoint); err != nil {
		return err
	}
	s.Room, err = program.OpenRoom(w, program.RoomName{Name: Name + "-" + s.place.Endpoint, Account: accountClients})
	return err
}

// connect starts the relay.
func (s *server) connect(ctx context.Context) error {
	folder := program.DiskFolder("")
	for _, name := range []string{folder, folder + "/run"} {
		if err := s.Room.Clear(name); err != nil {
			return err
		}
	}
	if err := s.relay.open(ctx, s.Room.Reach("")+"/run/socket"); err != nil {
		return &diag.Error{Code: "endpoint-unreachable", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("reach endpoint %q", s.place.Endpoint), Err: err}
	}
	return nil
}

// markKey is a key of databases that a prefill filled, and may empty.
const markKey = "bragg:prefill"

// fillEndpoint writes all keys into a database that is empty or has those of an earlier prefill, which go.
func (s *server) fillEndpoint(ctx context.Context) error {
	if err := s.emptyEndpoint(ctx); err != nil {
		return err
	}
	if _, err := s.query(ctx, "SET", markKey, "1"); err != nil {
		return err
	}
	return s.write(ctx)
}

// emptyEndpoint removes the keys of an earlier prefill. It refuses a database that has other keys.
func (s *server) emptyEndpoint(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	size, err := s.query(ctx, "DBSIZE")
	if err != nil {
		return err
	}
	ours, err := s.query(ctx, "EXISTS", markKey)
	if err != nil {
		return err
	}
	if size != "0" && ours != "1" {
		return &diag.Error{Code: "endpoint-not-empty", Exit: diag.ExitRefused,
			Message: fmt.Sprintf("the database of endpoint %q has %.20s keys that no prefill wrote", s.place.Endpoint, size),
			Hint:    "a prefill replaces all keys of the database: choose an empty one by dbname=NUMBER in the settings of the endpoint"}
	}
	_, err = s.query(ctx, "FLUSHDB")
	return err
}

// upEndpoint reaches the endpoint and measures what the way through the relay costs.
func (s *server) upEndpoint(ctx context.Context) (err error) {
	if err := s.connect(ctx); err != nil {
		return err
	}
	text, err := s.query(ctx, "INFO", "server")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if version, is := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); is {
			s.serverVersion = version
		}
	}
	through, beside, err := s.relay.cost(ctx, s.Room.Reach("")+"/run/socket")
	if err != nil {
		return err
	}
	s.relayed = fmt.Sprintf("a PING takes %.3f ms by the agent's socket and %.3f ms beside it (medians, idle): latencies are longer by about the difference",
		through.Seconds()*1e3, beside.Seconds()*1e3)
	return s.checkKeys(ctx)
}

// version is that of the server.
func (s *server) version() string {
	if s.place.Endpoint != "" {
		return s.serverVersion
	}
	return s.tools["redis-server"].Version
}

// where names the place of the keys.
func (s *server) where() string {
	if s.place.Endpoint != "" {
		return "at endpoint " + s.place.Endpoint
	}
	return "on disk " + s.place.Disk
}

// noteRelay marks loads whose commands go through the relay.
const noteRelay interval.NoteCode = "relayed"

// describeRelay notes how the endpoint is reached.
func (s *server) describeRelay(e *interval.Engine) {
	if s.place.Endpoint != "" {
		e.Backends = append(e.Backends, "endpoint by "+s.relay.String())
		e.Notes = append(e.Notes, interval.EngineNote{Code: noteRelay, Text: s.relayed})
	}
}
