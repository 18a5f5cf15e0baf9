package mariadb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Server is the database of one prepared load or prefill: a server on the VM, which runs between Up and Close, or an endpoint.
type Server struct {
	Commands
	database.Server
	Version string // of the server; "" before Up

	secrets []*os.File
	storage []string // its file systems
	login   bool
}

// wrong finds the errors in the server's log.
func wrong(line string) bool { return strings.Contains(line, "[ERROR]") }

// Use is what a generator brings to its server.
type Use struct {
	Name string // of the generator: its databases are its own
	Said *program.Transcript
	// Login is set for a client that needs a user with a password: see Server.Login.
	Login bool
}

// Open finds programs, settings of the endpoint and the place of the files. It starts nothing. The caller calls Close, also after an error.
func (c *Config) Open(ctx context.Context, w *load.Workload, u Use) (s *Server, err error) {
	s = &Server{Server: database.NewServer("mariadbd", u.Said, wrong), login: u.Login,
		Commands: Commands{config: c, folder: program.RoomFolder, paths: map[string]string{}}}
	tools, err := program.Find(ctx, c.Needs(), folders...)
	if err != nil {
		return s, err
	}
	for name, tool := range tools {
		s.paths[name] = tool.Path
	}
	name := program.RoomName{Name: u.Name, Account: account}
	switch {
	case c.Connected():
		name.Name += fmt.Sprintf("-clients-%d", w.Number)
		if s.Room, err = program.OpenRoom(w, name); err == nil {
			s.secrets, err = secrets(c.Endpoint, c.Peer(Role), s.Room)
		}
		return s, err
	case c.Endpoint == "":
		if s.paths[installer], err = exec.LookPath(installer); err != nil {
			return s, &diag.Error{Code: "program-missing", Exit: diag.ExitUnavailable, Message: "find programs on this machine: no " + installer,
				Hint: "it comes with the server: install mariadb-server"}
		}
		s.Version = tools["mariadbd"].Version
		name.FileSystem, name.Said = &c.FileSystem, u.Said
		if s.Room, err = program.OpenRoom(w, name, c.Disk, c.LogDisk); err == nil {
			s.own, s.storage = s.Room.MountedFolder, s.Room.Storage()
		}
		return s, err
	}
	if s.Endpoint, err = program.ReadEndpoint(c.Endpoint); err != nil {
		return s, err
	}
	name.Name += "-" + c.Endpoint
	if s.Room, err = program.OpenRoom(w, name); err != nil {
		return s, err
	}
	s.secrets, err = secrets(c.Endpoint, s.Endpoint, s.Room)
	return s, err
}

// Complete adds what all commands of the load have: environment, account, the room, and the files for an endpoint.
func (s *Server) Complete(c program.Command) program.Command {
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", "LC_ALL=C", "TZ=UTC"}
	c = s.Room.Confine(c)
	c.Files = slices.Concat(c.Files, s.secrets)
	if c.Alone {
		c = s.Room.Mounted(c)
	}
	return c
}

// Query runs one statement as Role, or as the user of the endpoint. Its answer has a line for each row.
func (s *Server) Query(ctx context.Context, statement string) (string, error) {
	return s.RunKept(ctx, s.Complete(s.client(Role, statement)))
}

// dropAddressed removes the users of addresses that the installer makes: administrators without a password.
const dropAddressed = "SET @users = (SELECT GROUP_CONCAT(QUOTE(User), '@', QUOTE(Host)) FROM mysql.user WHERE Host <> 'localhost' OR User = ''); " +
	"EXECUTE IMMEDIATE COALESCE(CONCAT('DROP USER ', @users), 'DO 0')"

// Create makes an empty server with a database for Role in place of the former one, and starts it.
func (s *Server) Create(ctx context.Context) error {
	if err := s.Room.Clear(program.DiskFolder(s.config.Disk), program.DiskFolder(s.config.LogDisk)); err != nil {
		return err
	}
	if s.config.LogDisk != s.config.Disk {
		if err := s.Room.Make(program.DiskFolder(s.config.LogDisk) + "/redo"); err != nil {
			return err
		}
	}
	if _, err := s.RunKept(ctx, s.Complete(s.Install())); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	statement := dropAddressed + "; CREATE DATABASE " + Role + "; CREATE USER " + Role + "@localhost; GRANT ALL ON " + Role + ".* TO " + Role + "@localhost"
	if s.login { // its password protects nothing: who reaches the socket may do all
		statement += "; CREATE USER " + loginRole + "@localhost IDENTIFIED BY '" + loginRole + "'; GRANT ALL ON " + Role + ".* TO " + loginRole + "@localhost"
	}
	_, err := s.RunKept(ctx, s.Complete(s.client(adminRole, statement)))
	return err
}

// Login is how a client connects that does not read the files of MariaDB's own.
type Login struct {
	Host, Port               string // Host may be the path of a socket
	Database, User, Password string
}

// Login returns how commands with the room connect, if Use asked for it: as a user of an own server who has a password, or as the user of
// the endpoint.
func (s *Server) Login() Login {
	if !s.config.Elsewhere() {
		return Login{Host: socketPath(s.folder(s.config.Disk)), Port: "3306", Database: Role, User: loginRole, Password: loginRole}
	}
	e := s.Endpoint
	if s.config.Connected() {
		e = s.config.Peer(Role)
	}
	return Login{Host: e["host"], Port: cmp.Or(e["port"], "3306"), Database: e["dbname"], User: e["user"], Password: e["password"]}
}

// Ask opens a connection of Role, or of the user of the endpoint, that answers one question again and again.
func (s *Server) Ask(ctx context.Context, question string) (a *database.Asker, first string, err error) {
	return database.Ask(ctx, s.Complete(s.client(Role, "")), question, s.Said)
}

// Up starts the server on the data of an earlier Create, or reaches the endpoint, and notes its settings.
func (s *Server) Up(ctx context.Context) (err error) {
	if s.config.Elsewhere() {
		if err := s.reachIt(ctx); err != nil {
			return err
		}
	} else if !s.exists(s.config.Disk, "data/ibdata1") {
		return database.NoDatabase("disk %s has no database", s.config.Disk)
	} else if redo := "redo/ib_logfile0"; s.config.LogDisk != s.config.Disk && !s.exists(s.config.LogDisk, redo) ||
		s.config.LogDisk == s.config.Disk && !s.exists(s.config.Disk, "data/ib_logfile0") {
		return database.NoDatabase("the database on disk %s was made with its redo log on another disk than %s", s.config.Disk, s.config.LogDisk)
	} else if err := s.start(ctx); err != nil {
		return err
	}
	if !s.isMariaDB() {
		return nil // an endpoint with a MySQL, which has no such table
	}
	// Only numbers and switches: no addresses, paths or commands.
	_, err = s.Query(ctx, "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES"+
		" WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', 'AUTO') AND VARIABLE_TYPE <> 'VARCHAR' AND VARIABLE_NAME <> 'PORT' ORDER BY 1")
	return err
}

// reachIt asks a server elsewhere for its version.
func (s *Server) reachIt(ctx context.Context) (err error) {
	if s.Version, err = s.Query(ctx, "SELECT VERSION()"); err != nil {
		return s.config.Unreachable(err)
	}
	if s.config.Connected() {
		return s.readFacts(ctx)
	}
	return nil
}

func (s *Server) exists(disk, file string) bool {
	_, err := os.Stat(s.Room.Path(program.DiskFolder(disk), file))
	return !errors.Is(err, fs.ErrNotExist)
}

// start starts the server and waits until it answers. What a killed one left in its folders for sockets and temporary files goes.
func (s *Server) start(ctx context.Context) error {
	disk := program.DiskFolder(s.config.Disk)
	if err := s.Room.Clear(disk+"/run", disk+"/tmp"); err != nil {
		return err
	}
	return s.Start(ctx, s.Complete(s.Mariadbd()), s.Complete(s.client(adminRole, "SELECT 1")))
}

// isMariaDB reports whether the server is a MariaDB: an endpoint may be a MySQL. The versions of MariaDB's own programs have no name.
func (s *Server) isMariaDB() bool {
	return s.config.Endpoint == "" || strings.Contains(s.Version, "MariaDB")
}

// Stop ends the server, with its dirty pages written if there is time.
func (s *Server) Stop() { s.StopBy(syscall.SIGTERM) }

// Close stops the server and lets other loads use its data.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.Stop()
	for _, f := range s.secrets {
		_ = f.Close()
	}
	s.secrets = nil
	return s.Release()
}

// Describe completes the engine of a load by its server.
func (s *Server) Describe(e *interval.Engine) {
	version, _, _ := strings.Cut(s.Version, "-")
	product := "MySQL "
	if s.isMariaDB() {
		product = "MariaDB "
	}
	e.Backends = append([]string{product + version}, s.storage...)
}
