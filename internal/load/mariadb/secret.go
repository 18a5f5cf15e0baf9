package mariadb

import (
	"fmt"
	"os"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load/program"
)

// Inherited files of commands for a server elsewhere. The first one is the room.
const (
	secretForClient = 1 + iota
	secretForSysbench
)

// secrets are files with the settings of a server elsewhere, one for each kind of client. They have no name: no other process opens them, and none
// is left behind.
func secrets(name string, e program.Endpoint, r *program.Room) (files []*os.File, err error) {
	if mode := e["sslmode"]; mode != "" && mode != "disable" && mode != "prefer" || e["sslrootcert"] != "" {
		return nil, &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("endpoint %q asks for encryption, and the clients of MariaDB in loads cannot check a server's certificate", name)}
	}
	host, port := "host", "port"
	if strings.HasPrefix(e["host"], "/") {
		host = "socket"
	}
	client, bench := []string{"[client]"}, []string{}
	for _, k := range []struct{ key, client, bench string }{
		{"host", host, "mysql-" + host}, {"port", port, "mysql-port"}, {"user", "user", "mysql-user"},
		{"password", "password", "mysql-password"}, {"dbname", "database", "mysql-db"},
	} {
		value := e[k.key]
		if value == "" {
			continue
		}
		quote := `"`
		if strings.Contains(value, quote) {
			quote = "'"
		}
		if strings.Contains(value, quote) || strings.ContainsAny(value, "\r\n") {
			return nil, &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("endpoint %q: %s has both kinds of quotes or several lines, which sysbench's file cannot hold", name, k.key)}
		}
		client = append(client, k.client+"="+quote+strings.ReplaceAll(value, `\`, `\\`)+quote)
		bench = append(bench, k.bench+"="+quote+value+quote)
	}
	for _, lines := range [][]string{client, bench} {
		f, err := r.Unnamed(strings.Join(lines, "\n") + "\n")
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}
