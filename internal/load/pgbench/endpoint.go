package pgbench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// An endpoint is a database that the user named on the machine of the load, with its address and password. Scenarios have only its
// name, because they are untrusted: they neither choose an address nor read a password, and neither gets into a bundle, a log or an
// argument list.

var endpointPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// endpointVariable names the variable with the settings of an endpoint.
func endpointVariable(name string) string {
	return "BRAGG_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// endpointFile names the file with them.
func endpointFile(name string) string { return "/etc/bragg/endpoints/" + name }

// endpointKeys are the settings of an endpoint, and the variables by which clients receive them.
var endpointKeys = map[string]string{
	"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD",
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "connect_timeout": "PGCONNECT_TIMEOUT",
}

const endpointBytesMax = 64 << 10

// readEndpoint returns the environment in which clients reach the endpoint.
func readEndpoint(name string) ([]string, error) {
	text, given := os.LookupEnv(endpointVariable(name))
	if !given {
		content, err := os.ReadFile(endpointFile(name))
		if err != nil {
			reason := err
			if errorIsMissing(err) {
				reason = fs.ErrNotExist
			}
			return nil, fault("endpoint-unknown", fmt.Sprintf("endpoint %q is not defined on this machine: %v", name, reason),
				fmt.Sprintf("set %s to \"host=… dbname=… user=… password_file=…\", or write that into %s", endpointVariable(name), endpointFile(name)))
		}
		text = string(content)
	}
	env, err := parseEndpoint(text)
	if err != nil {
		return nil, fault("endpoint-invalid", fmt.Sprintf("settings of endpoint %q: %v", name, err), "")
	}
	return env, nil
}

func errorIsMissing(err error) bool { return os.IsNotExist(err) }

// parseEndpoint reads settings, separated by blanks or line feeds. Errors never quote values.
func parseEndpoint(text string) (env []string, err error) {
	if len(text) > endpointBytesMax {
		return nil, fmt.Errorf("more than %d bytes", endpointBytesMax)
	}
	for number, word := range strings.Fields(text) {
		key, value, found := strings.Cut(word, "=")
		variable, known := endpointKeys[key]
		switch {
		case !found:
			return nil, fmt.Errorf("word %d is not KEY=VALUE", number+1)
		case key == "password_file":
			secret, err := os.ReadFile(value)
			if err != nil {
				return nil, fmt.Errorf("password_file cannot be read: %w", errors.Unwrap(err)) // without its path, which may be a password
			}
			variable, value = "PGPASSWORD", strings.TrimRight(string(secret), "\r\n")
		case !known:
			return nil, fmt.Errorf("word %d has an unknown key", number+1)
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("word %d has a zero byte", number+1)
		}
		if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, variable+"=") }) {
			return nil, fmt.Errorf("word %d repeats a key", number+1)
		}
		env = append(env, variable+"="+value)
	}
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "PGHOST=") }) {
		return nil, fmt.Errorf("no host")
	}
	return env, nil
}

// addressPattern finds what programs print of the address of a server and of this machine.
var addressPattern = regexp.MustCompile(`(connection to server at )[^,]*|(for host )"[^"]*"`)

// conceal replaces the settings of an endpoint in what programs printed: its host and password anywhere, others where messages quote them.
func conceal(text string, access []string) string {
	if len(access) == 0 {
		return text
	}
	text = addressPattern.ReplaceAllString(text, "${1}${2}(address)")
	for _, setting := range access {
		variable, value, _ := strings.Cut(setting, "=")
		switch {
		case value == "":
		case variable == "PGHOST", variable == "PGPASSWORD":
			text = strings.ReplaceAll(text, value, "("+variable+")")
		case variable == "PGPORT":
			text = strings.ReplaceAll(text, "port "+value, "port (PGPORT)")
		default:
			text = strings.ReplaceAll(text, `"`+value+`"`, "("+variable+")")
		}
	}
	return text
}

// concealed is an error of a program without the settings of an endpoint.
type concealed struct {
	error
	text string
}

func (c concealed) Error() string { return c.text }

func (c concealed) Unwrap() error { return c.error }

func (in *instance) conceal(err error) error {
	if err == nil || len(in.access) == 0 {
		return err
	}
	return concealed{err, conceal(err.Error(), in.access)}
}
