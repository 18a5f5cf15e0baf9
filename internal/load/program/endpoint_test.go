package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/load/program"
)

func TestEndpoint(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env, err := program.ParseEndpoint("host=db.example port=5433\nuser=bench dbname=b password_file=" + secret)
	if err != nil || fmt.Sprint(env) != "map[dbname:b host:db.example password:s3cret port:5433 user:bench]" {
		t.Errorf("%v, %v", env, err)
	}
	pipe, large := filepath.Join(t.TempDir(), "pipe"), filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, text := range []string{"", "user=x", "host=x host=y", "host=x s3cret", "host=x options=s3cret", "host=x password=s3cret password=s3cret", "host=x password_file=/s3cret", "host=x password_file=/dev/zero",
		"host=x password_file=" + pipe, "host=x password_file=" + large} {
		if env, err := program.ParseEndpoint(text); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, %v", text, env, err)
		}
	}
}

// TestConceal: messages of programs have nothing of an endpoint's settings.
func TestConceal(t *testing.T) {
	access := program.Endpoint{"host": "db.example", "port": "5433", "user": "bench", "dbname": "sales", "password": "s3cret"}
	for text, want := range map[string]string{
		`connection to server at "db.example" (10.1.2.3), port 5433 failed: FATAL:  password authentication failed for user "bench"`: `connection to server at (address), port (port) failed: FATAL:  password authentication failed for user (user)`,
		`no pg_hba.conf entry for host "10.9.9.9", user "bench", database "sales"`:                                                   `no pg_hba.conf entry for host (address), user (user), database (dbname)`,
		`could not translate host name db.example: s3cret`:                                                                           `could not translate host name (host): (password)`,
		"failed to connect to `user=bench database=sales`: 10.1.2.3:5432 (db.example): dial error":                                   "failed to connect to (address): (address) ((host)): dial error",
		`read tcp 10.9.9.9:40312->10.1.2.3:5432: connection reset by peer`:                                                           `read tcp (address)->(address): connection reset by peer`,
		`read tcp [fe80::1%eth0]:40312->[2001:db8::1]:5432: i/o timeout`:                                                             `read tcp (address)->(address): i/o timeout`,
		"check the SALES TPROC-C schema and role BENCH\n in host DB.EXAMPLE:5433 under user BENCH?":                                  "check the (dbname) TPROC-C schema and role (user)\n in host (host):(port) under user (user)?",
		"CREATING DATABASE sales under OWNER bench":                                                                                  "CREATING DATABASE (dbname) under OWNER (user)",
		`pgbench: 5433 transactions`: `pgbench: 5433 transactions`,
	} {
		if got := access.Conceal(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if text := `connection to server at "x"`; program.Endpoint(nil).Conceal(text) != text {
		t.Error("messages of an own server changed")
	}
}
