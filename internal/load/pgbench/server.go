package pgbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

var errEndedByItself = errors.New("without an error")

// Bounds of waiting for a server.
const (
	serverStartMax = 10 * time.Minute // it may have to recover after a power cut
	serverStopMax  = 30 * time.Second // for its last checkpoint; then it is killed, and the next start recovers
	answerEvery    = 50 * time.Millisecond
)

// environment of all programs: nothing of this process's.
func (in *instance) environment() []string {
	return slices.Concat([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "PGCONNECT_TIMEOUT=30", "PGAPPNAME=bragg"}, in.access)
}

// complete adds what all commands of the instance have.
func (in *instance) complete(c program.Command) program.Command {
	c.Env, c.Account = in.environment(), in.room.account
	c.Files = []*os.File{in.room.folder}
	return c
}

// run runs a command to its end and keeps what it prints.
func (in *instance) run(ctx context.Context, c program.Command) (string, error) {
	fmt.Fprintf(in.said, "$ %s\n", c)
	out, err := in.complete(c).Run(ctx)
	if err != nil {
		fmt.Fprintf(in.said, "%s\n%v\n", out, err)
		return "", in.conceal(err)
	}
	fmt.Fprint(in.said, out)
	return strings.TrimSpace(out), nil
}

// query runs one statement.
func (in *instance) query(ctx context.Context, role, db, statement string) (string, error) {
	return in.run(ctx, in.commands.psql(role, db, statement))
}

// createServer makes an empty database cluster in place of the former one, and starts it.
func (in *instance) createServer(ctx context.Context) error {
	k, c := in.commands, in.config
	if err := in.room.clear(of(c.disk), of(c.walDisk)); err != nil {
		return err
	}
	if _, err := in.run(ctx, k.initdb()); err != nil {
		return err
	}
	if err := in.startServer(ctx); err != nil {
		return err
	}
	for _, statement := range []string{"CREATE ROLE " + benchRole + " LOGIN", "CREATE DATABASE " + database + " OWNER " + benchRole} {
		if _, err := in.query(ctx, adminRole, adminRole, statement); err != nil {
			return err
		}
	}
	return nil
}

// startServer starts the server and waits until it answers.
func (in *instance) startServer(ctx context.Context) error {
	c := in.config
	for _, name := range []string{of(c.disk), of(c.walDisk), of(c.disk) + "/run"} {
		if err := in.room.make(name); err != nil {
			return err
		}
	}
	command := in.complete(in.commands.postgres())
	last := program.NewTail(nil)
	command.Stdout, command.Stderr = in.log, io.MultiWriter(in.log, last)
	fmt.Fprintf(in.said, "$ %s\n", command)
	server, err := command.Start()
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	in.server = server
	ctx, cancel := context.WithTimeout(ctx, serverStartMax)
	defer cancel()
	for {
		if _, err := in.complete(in.commands.psql(adminRole, adminRole, "SELECT 1")).Run(ctx); err == nil {
			in.smallPages = slices.Contains(in.config.settings, setting{"huge_pages", "try"}) && !hugePages(server.ID())
			return nil
		}
		select {
		case <-server.Done():
			return fmt.Errorf("postgres ended: %w%s", cmp.Or(server.Wait(), errEndedByItself), last.Quoted())
		default:
		}
		if err := wait.For(ctx, answerEvery); err != nil {
			return fmt.Errorf("wait for postgres: %w%s", err, last.Quoted())
		}
	}
}

// hugePages reports whether a process has a shared mapping in huge pages.
func hugePages(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err != nil || strings.Contains(string(maps), "/anon_hugepage")
}

// stopServer ends the server, with a last checkpoint if there is time.
func (in *instance) stopServer() {
	if in.server == nil {
		return
	}
	stop := program.Stopper{Process: in.server, Signal: os.Interrupt, Grace: serverStopMax}
	stop.Begin()
	_ = in.server.Wait()
	stop.End()
	in.server = nil
}

// checkData makes sure that the server has the data of the workload.
func (in *instance) checkData(ctx context.Context) error {
	own := slices.ContainsFunc(in.config.scripts, func(s script) bool { return s.own })
	if in.config.endpoint != "" && own {
		return nil
	}
	missing := func(found string, err error) error {
		return &diag.Error{Code: "no-database", Exit: diag.ExitData, Err: err,
			Message: fmt.Sprintf("want data of scale %d, found %s", in.config.scale, found),
			Hint:    "add workload.PrefillRun for this workload, or for one with the same disk and scale, before the load"}
	}
	text, err := in.query(ctx, benchRole, database, "SELECT count(*) FROM pgbench_branches WHERE to_regclass('pgbench_accounts_pkey') IS NOT NULL") // made last
	if program.Failed(err) {
		return missing("none", err)
	} else if err != nil {
		return err
	}
	if n, err := strconv.Atoi(text); err != nil || n != in.config.scale && in.config.scale != 0 {
		return missing("scale "+text, nil)
	}
	return nil
}

// hasServer reports whether the disk has a database cluster.
func (in *instance) hasServer() bool {
	_, err := os.Stat(filepath.Join(in.room.path, of(in.config.disk), "data", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}
