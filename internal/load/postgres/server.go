package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// Server is the database of one prepared load or prefill: a server on the VM, which runs between Up and Close, or an endpoint.
type Server struct {
	Commands
	Room    *program.Room
	Version string // of the server; "" before Up

	endpoint program.Endpoint
	process  *program.Process    // nil unless it runs
	said     *program.Transcript // commands and what they printed
	log      *program.Transcript
	last     *program.Tail // of the log
	// smallPages: the scenario asks for huge pages, and the server did not get them.
	smallPages bool
}

// Use is what a generator brings to its server.
type Use struct {
	Name  string      // of the generator: its databases are its own
	Needs []load.Need // further programs
	Said  *program.Transcript
}

// logBytesMax bounds what is kept of the server's log.
const logBytesMax = 64 << 10

// Open finds programs, settings of the endpoint and the place of the files. It starts nothing. The caller calls Close, also after an error.
func (c *Config) Open(ctx context.Context, w *load.Workload, u Use) (s *Server, err error) {
	s = &Server{said: u.Said, log: program.NewTranscript(logBytesMax)}
	s.Commands = Commands{config: c, folder: program.RoomFolder}
	if s.tools, err = program.Find(ctx, slices.Concat(u.Needs, c.Needs()), folders...); err != nil {
		return s, err
	}
	name := program.RoomName{Name: u.Name, Account: account}
	if c.Endpoint == "" {
		s.Version = s.tools["postgres"].Version
		s.Room, err = program.OpenRoom(w, name, c.Disk, c.WALDisk)
		return s, err
	}
	if s.endpoint, err = program.ReadEndpoint(c.Endpoint); err != nil {
		return s, err
	}
	name.Name += "-" + c.Endpoint
	s.Room, err = program.OpenRoom(w, name)
	return s, err
}

// variables are those by which PostgreSQL's clients receive the settings of an endpoint.
var variables = []struct{ key, name string }{
	{"host", "PGHOST"}, {"port", "PGPORT"}, {"dbname", "PGDATABASE"}, {"user", "PGUSER"}, {"password", "PGPASSWORD"},
	{"sslmode", "PGSSLMODE"}, {"sslrootcert", "PGSSLROOTCERT"}, {"connect_timeout", "PGCONNECT_TIMEOUT"},
}

// environment of all programs: nothing of this process's.
func (s *Server) environment() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "PGAPPNAME=bragg"}
	if s.endpoint["connect_timeout"] == "" {
		env = append(env, "PGCONNECT_TIMEOUT=30")
	}
	for _, v := range variables {
		if value, given := s.endpoint[v.key]; given {
			env = append(env, v.name+"="+value)
		}
	}
	return env
}

// Login is how a client connects that does not know the variables of PostgreSQL: as Role, or as the user of the endpoint.
type Login struct {
	Host, Port, SSLMode, Database, User, Password string
	Admin, AdminDatabase                          string // who may make databases; the user of an endpoint itself
}

// Login returns how commands with the room connect.
func (s *Server) Login() Login {
	if s.config.Endpoint == "" { // which trusts everyone who can reach its socket
		return Login{Host: s.Socket(), Port: "5432", SSLMode: "disable", Database: Role, User: Role, Password: Role, Admin: adminRole, AdminDatabase: adminRole}
	}
	e := s.endpoint
	l := Login{Host: e["host"], Port: cmp.Or(e["port"], "5432"), SSLMode: cmp.Or(e["sslmode"], "prefer"), User: cmp.Or(e["user"], adminRole), Password: e["password"]}
	l.Database = cmp.Or(e["dbname"], l.User)
	l.Admin, l.AdminDatabase = l.User, l.Database
	return l
}

// Complete adds what all commands of the load have: environment, account and the room.
func (s *Server) Complete(c program.Command) program.Command {
	c.Env = append(s.environment(), c.Env...)
	return s.Room.Confine(c)
}

// Run runs a command to its end and keeps what it prints.
func (s *Server) Run(ctx context.Context, c program.Command) (string, error) {
	fmt.Fprintf(s.said, "$ %s\n", c)
	out, err := s.Complete(c).Run(ctx)
	if err != nil {
		fmt.Fprintf(s.said, "%s\n%v\n", out, err)
		return "", s.Conceal(err)
	}
	fmt.Fprint(s.said, out)
	return strings.TrimSpace(out), nil
}

// Conceal replaces settings of an endpoint in an error.
func (s *Server) Conceal(err error) error { return s.endpoint.ConcealError(err) }

// Explain completes an error of a client: by the end of the server, if that was the cause, and without settings of an endpoint.
func (s *Server) Explain(err error) error {
	if s.process != nil {
		select {
		case <-s.process.Done():
			err = fmt.Errorf("postgres ended: %w%s: %w", cmp.Or(s.process.Wait(), errEndedByItself), s.last.Quoted(), err)
		case <-time.After(answerEvery):
		}
	}
	return s.Conceal(err)
}

// Query runs one statement as Role. Its answer has a line for each row, with | between columns.
func (s *Server) Query(ctx context.Context, statement string) (string, error) {
	return s.Run(ctx, s.psql(Role, statement))
}

// Create makes an empty database cluster with a database for Role in place of the former one, and starts it.
func (s *Server) Create(ctx context.Context) error {
	if err := s.Room.Clear(program.DiskFolder(s.config.Disk), program.DiskFolder(s.config.WALDisk)); err != nil {
		return err
	}
	if _, err := s.Run(ctx, s.Initdb()); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, statement := range []string{"CREATE ROLE " + Role + " LOGIN", "CREATE DATABASE " + Role + " OWNER " + Role} {
		if _, err := s.Run(ctx, s.psql(adminRole, statement)); err != nil {
			return err
		}
	}
	return nil
}

// Up starts the server on the data of an earlier Create, or reaches the endpoint, and notes its settings.
func (s *Server) Up(ctx context.Context) (err error) {
	if s.config.Endpoint != "" {
		if s.Version, err = s.Query(ctx, "SHOW server_version"); err != nil {
			return &diag.Error{Code: "endpoint-unreachable", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("reach endpoint %q", s.config.Endpoint), Err: err}
		}
	} else if !s.exists() {
		return &diag.Error{Code: "no-database", Exit: diag.ExitData, Message: fmt.Sprintf("disk %s has no database", s.config.Disk),
			Hint: "add workload.PrefillRun before the load"}
	} else if err := s.checkWAL(); err != nil {
		return err
	} else if err := s.start(ctx); err != nil {
		return err
	}
	// Texts are left out: addresses, paths, and commands and connections of a superuser, which may have passwords.
	_, err = s.Query(ctx, "SELECT name, setting, unit, source FROM pg_settings"+
		" WHERE source <> 'default' AND vartype <> 'string' AND name <> 'port' ORDER BY name")
	return err
}

// exists reports whether the disk has a database cluster.
func (s *Server) exists() bool {
	_, err := os.Stat(s.Room.Path(program.DiskFolder(s.config.Disk), "data", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// checkWAL refuses a WAL that is not where the plan has it: only initdb places it.
func (s *Server) checkWAL() error {
	at, _ := os.Readlink(s.Room.Path(program.DiskFolder(s.config.Disk), "data", "pg_wal"))
	own := s.config.WALDisk != s.config.Disk
	if own && strings.HasSuffix(at, "/"+program.DiskFolder(s.config.WALDisk)+"/wal") || !own && at == "" {
		return nil
	}
	return &diag.Error{Code: "no-database", Exit: diag.ExitData,
		Message: fmt.Sprintf("the database on disk %s was made with its WAL on another disk than %s", s.config.Disk, s.config.WALDisk),
		Hint:    "add workload.PrefillRun of this workload before the load"}
}

var errEndedByItself = errors.New("without an error")

// Bounds of waiting for a server.
const (
	startMax    = 10 * time.Minute // it may have to recover after a power cut
	stopMax     = 30 * time.Second // for its last checkpoint; then it is killed, and the next start recovers
	answerEvery = 50 * time.Millisecond
)

// start starts the server and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	disk := program.DiskFolder(s.config.Disk)
	for _, name := range []string{disk, program.DiskFolder(s.config.WALDisk), disk + "/run"} {
		if err := s.Room.Make(name); err != nil {
			return err
		}
	}
	command := s.Complete(s.Postgres())
	s.last = program.NewTail(nil)
	command.Stdout, command.Stderr = s.log, io.MultiWriter(s.log, s.last)
	fmt.Fprintf(s.said, "$ %s\n", command)
	process, err := command.Start()
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.process = process
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	for {
		if _, err := s.Complete(s.psql(adminRole, "SELECT 1")).Run(ctx); err == nil {
			s.smallPages = s.config.Setting("huge_pages") == "try" && !hugePages(process.ID())
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("postgres ended: %w%s", cmp.Or(process.Wait(), errEndedByItself), s.last.Quoted())
		default:
		}
		if err := wait.For(ctx, answerEvery); err != nil {
			return fmt.Errorf("wait for postgres: %w%s", err, s.last.Quoted())
		}
	}
}

// hugePages reports whether a process has a shared mapping in huge pages.
func hugePages(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err != nil || strings.Contains(string(maps), "/anon_hugepage")
}

// Stop ends the server, with a last checkpoint if there is time.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	stop := program.Stopper{Process: s.process, Signal: os.Interrupt, Grace: stopMax}
	stop.Begin()
	_ = s.process.Wait()
	stop.End()
	s.process = nil
}

// Close stops the server and lets other loads use its data.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.Stop()
	err := s.Room.Close()
	s.Room = nil
	return err
}

// Describe completes the engine of a load by its server.
func (s *Server) Describe(e *interval.Engine) {
	e.Backends = []string{"PostgreSQL " + s.Version}
	if s.smallPages {
		e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteSmallPages, Text: "huge_pages=try, and the system had none to give"})
	}
}

// Outputs are what the generator kept, under a name, and the server's log.
func (s *Server) Outputs(name string) []load.Output {
	list := []load.Output{{Name: name, Text: s.endpoint.Conceal(s.said.String())}}
	if text := s.log.String(); text != "" {
		list = append(list, load.Output{Name: "postgres.log", Text: text})
	}
	return list
}
