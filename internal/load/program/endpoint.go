package program

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// Endpoint is a database that the user named on the machine of the load: its settings, such as host and password, by their keys.
// Scenarios have only its name, because they are untrusted: they neither choose an address nor read a password, and neither gets into a
// bundle, a log or an argument list.
type Endpoint map[string]string

var endpointPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// EndpointName reports whether a scenario may call an endpoint that.
func EndpointName(name string) bool { return endpointPattern.MatchString(name) }

// EndpointVariable names the variable with the settings of an endpoint.
func EndpointVariable(name string) string {
	return "BRAGG_ENDPOINT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// EndpointFile names the file with them.
func EndpointFile(name string) string { return "/etc/bragg/endpoints/" + name }

// EndpointFacts says in a plan where the settings of an endpoint come from.
func EndpointFacts(name string) string {
	return fmt.Sprintf("endpoint %q, from %s or %s on the VM", name, EndpointVariable(name), EndpointFile(name))
}

// endpointKeys are replaced in this order.
var endpointKeys = []string{"user", "dbname", "sslmode", "sslrootcert", "connect_timeout", "password", "host", "port"}

// endpointBytesMax bounds settings, and each file that one of them names.
const endpointBytesMax = 64 << 10

// certificatesBytesMax bounds a file of certificates: those of all authorities that systems trust are a quarter of this.
const certificatesBytesMax = 1 << 20

// Certificates reads the file of certificates that the settings name.
func (e Endpoint) Certificates() ([]byte, error) {
	return readSmall(e["sslrootcert"], certificatesBytesMax)
}

// readSmall reads a file of at most bytesMax bytes. Settings may name anything, such as a device without an end or a pipe that stays empty.
func readSmall(path string, bytesMax int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		err = fmt.Errorf("more than %d bytes", bytesMax)
	}
	return content, err
}

// ReadEndpoint returns the settings of an endpoint on this machine.
func ReadEndpoint(name string) (Endpoint, error) {
	text, given := os.LookupEnv(EndpointVariable(name))
	if !given {
		content, err := readSmall(EndpointFile(name), endpointBytesMax)
		if err != nil {
			reason := err
			if errors.Is(err, fs.ErrNotExist) {
				reason = fs.ErrNotExist
			}
			return nil, &diag.Error{Code: "endpoint-unknown", Exit: diag.ExitUnavailable,
				Message: fmt.Sprintf("endpoint %q is not defined on this machine: %v", name, reason),
				Hint:    fmt.Sprintf("set %s to \"host=… dbname=… user=… password_file=…\", or write that into %s", EndpointVariable(name), EndpointFile(name))}
		}
		text = string(content)
	}
	e, err := ParseEndpoint(text)
	if err != nil {
		return nil, &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("settings of endpoint %q: %v", name, err)}
	}
	return e, nil
}

// ParseEndpoint reads settings, separated by blanks or line feeds. Errors never quote values.
func ParseEndpoint(text string) (Endpoint, error) {
	if len(text) > endpointBytesMax {
		return nil, fmt.Errorf("more than %d bytes", endpointBytesMax)
	}
	e := Endpoint{}
	for number, word := range strings.Fields(text) {
		key, value, found := strings.Cut(word, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("word %d is not KEY=VALUE", number+1)
		case key == "password_file":
			secret, err := readSmall(value, endpointBytesMax)
			if err != nil {
				return nil, fmt.Errorf("password_file cannot be read: %w", withoutPath(err)) // which may be a password
			}
			key, value = "password", strings.TrimRight(string(secret), "\r\n")
		case !slices.Contains(endpointKeys, key):
			return nil, fmt.Errorf("word %d has a key that is not one of %s", number+1, strings.Join(append(slices.Clone(endpointKeys), "password_file"), ", "))
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("word %d has a zero byte", number+1)
		}
		if _, twice := e[key]; twice {
			return nil, fmt.Errorf("word %d repeats a key", number+1)
		}
		e[key] = value
	}
	if e["host"] == "" {
		return nil, errors.New("no host")
	}
	return e, nil
}

func withoutPath(err error) error {
	var located *fs.PathError
	if errors.As(err, &located) {
		return located.Err
	}
	return err
}

// addressPattern finds what programs print of the address of a server and of this machine.
var addressPattern = regexp.MustCompile(`(connection to server at )[^,]*|(for host )"[^"]*"`)

// socketPattern finds what Go and its clients of databases print of connections.
var socketPattern = regexp.MustCompile("`user=[^`]*`|\\b\\d{1,3}(?:\\.\\d{1,3}){3}\\b(?::\\d+)?|\\[[0-9A-Fa-f:.]+(?:%\\w+)?\\]:\\d+")

// Conceal replaces the settings in what programs printed: host and password anywhere, others where messages quote them.
func (e Endpoint) Conceal(text string) string {
	if len(e) == 0 {
		return text
	}
	text = addressPattern.ReplaceAllString(text, "${1}${2}(address)")
	text = socketPattern.ReplaceAllString(text, "(address)")
	for _, key := range endpointKeys {
		switch value := e[key]; {
		case value == "":
		case key == "host", key == "password":
			text = strings.ReplaceAll(text, value, "("+key+")")
			text = strings.ReplaceAll(text, strings.ToUpper(value), "("+key+")") // as HammerDB prints it
		case key == "port":
			text = strings.ReplaceAll(text, "port "+value, "port (port)")
			text = strings.ReplaceAll(text, "(host):"+value, "(host):(port)") // the host is replaced before
		default:
			for _, quote := range []string{`"`, "'"} {
				text = strings.ReplaceAll(text, quote+value+quote, "("+key+")")
			}
			text = upperPattern(value).ReplaceAllString(text, "${1}("+key+")")
		}
	}
	return text
}

// upperPattern finds a value in capital letters where HammerDB asks whether to build, check or delete a schema.
func upperPattern(value string) *regexp.Regexp {
	return regexp.MustCompile(`(\b(?:the|role|under user|DATABASE|OWNER|User) )(?:` + regexp.QuoteMeta(strings.ToUpper(value)) + `|` + regexp.QuoteMeta(value) + `)\b`)
}

// concealed is an error of a program without the settings of an endpoint.
type concealed struct {
	error
	text string
}

func (c concealed) Error() string { return c.text }

func (c concealed) Unwrap() error { return c.error }

// ConcealError replaces the settings in the text of an error.
func (e Endpoint) ConcealError(err error) error {
	if err == nil || len(e) == 0 {
		return err
	}
	return concealed{err, e.Conceal(err.Error())}
}
