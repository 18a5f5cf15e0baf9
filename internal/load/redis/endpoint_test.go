package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/loadtest"
	"github.com/braggdev/bragg/internal/load/redis"
)

const password = "s3cret-of-the-endpoint"

// outside is a real Redis that a user runs elsewhere, with a password, on a TCP port with or without TLS. It returns its folder and port.
func outside(t *testing.T, withTLS bool) (dir, port string) {
	t.Helper()
	needRedis(t)
	dir = t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	args := []string{"--bind", "127.0.0.1", "--save", "", "--dir", dir, "--requirepass", password, "--unixsocket", filepath.Join(dir, "s")}
	if withTLS {
		certificate(t, dir)
		args = append(args, "--port", "0", "--tls-port", port, "--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"),
			"--tls-auth-clients", "no")
	} else {
		args = append(args, "--port", port)
	}
	server := exec.Command("/usr/bin/redis-server", args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Process.Kill(), server.Wait() })
	for range 100 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return dir, port
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return dir, port
}

// certificate makes one of 127.0.0.1 that signs itself.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: signed}, "key.pem": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ask executes a command as the user of the server.
func ask(t *testing.T, dir string, words ...string) string {
	t.Helper()
	c := exec.Command("/usr/bin/redis-cli", append([]string{"-s", filepath.Join(dir, "s")}, words...)...)
	c.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// endpoint defines the endpoint "cache" and returns a load on it.
func endpoint(t *testing.T, settings string) load.Workload {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRAGG_ENDPOINT_CACHE", "password_file="+secret+" "+settings)
	t.Chdir(t.TempDir()) // the agent's folder
	w := workload(t, map[string]string{"endpoint": "cache", "keys": "3000", "clients": "4"})
	w.Devices, w.Runtime, w.IntervalLength = nil, time.Second, 200*time.Millisecond
	return w
}

// A prefill and a load on a server elsewhere, by TCP and by TLS, in another database than the first. What was recorded is what the server
// counted, and neither password nor address gets into outputs or arguments.
func TestEndpoint(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprint(withTLS), func(t *testing.T) {
			dir, port := outside(t, withTLS)
			settings := "host=127.0.0.1 dbname=3 port=" + port
			if withTLS {
				settings += " sslmode=verify-full sslrootcert=" + filepath.Join(dir, "cert.pem")
			}
			w := endpoint(t, settings)
			if err := prefill(t, w); err != nil {
				t.Fatal(err)
			}
			if got := ask(t, dir, "-n", "3", "DBSIZE"); got != "3001" || ask(t, dir, "DBSIZE") != "0" {
				t.Errorf("%s keys", got)
			}
			ask(t, dir, "CONFIG", "RESETSTAT")
			in, err := redis.Generator{}.Prepare(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			var log loadtest.Log
			if err := in.Run(t.Context(), &log); err != nil {
				t.Fatal(err)
			}
			sum := loadtest.Add(log.Intervals())
			stats := ask(t, dir, "INFO", "commandstats")
			for kind, name := range []string{"get", "set"} {
				if n := sum.Directions[kind].Operations; n == 0 || !strings.Contains(stats, fmt.Sprintf("cmdstat_%s:calls=%d,", name, n)) {
					t.Errorf("%d operations %s, and the server says %s", n, name, stats)
				}
			}
			text := in.(load.Describer).Engine().String()
			for _, o := range in.(load.Teller).Outputs() {
				text += o.Text
			}
			if strings.Contains(text, password) || strings.Contains(text, "127.0.0.1") || !strings.Contains(text, "a PING takes") {
				t.Errorf("%s", text)
			}
			w.Remove = true
			if err := prefill(t, w); err != nil || ask(t, dir, "-n", "3", "DBSIZE") != "0" {
				t.Errorf("after the removal: %v, %s keys", err, ask(t, dir, "-n", "3", "DBSIZE"))
			}
		})
	}
}

// Keys of others are never replaced, and settings that do not work are errors without secrets.
func TestEndpointRefused(t *testing.T) {
	dir, port := outside(t, false)
	ask(t, dir, "SET", "customer:1", "x")
	w := endpoint(t, "host=127.0.0.1 port="+port)
	var e *diag.Error
	if err := prefill(t, w); !errors.As(err, &e) || e.Code != "endpoint-not-empty" {
		t.Errorf("%v", err)
	}
	if ask(t, dir, "DBSIZE") != "1" {
		t.Error("keys of others are gone")
	}
	for settings, want := range map[string]string{
		"host=127.0.0.1 port=1":                                    "refused",
		"host=127.0.0.1 sslmode=prefer port=" + port:               "sslmode is not",
		"host=127.0.0.1 dbname=x port=" + port:                     "dbname is not",
		"host=127.0.0.1 sslrootcert=/x port=" + port:               "verify-full",
		"host=127.0.0.1 dbname=99 port=" + port:                    "DB index is out of range",
		"host=127.0.0.1 user=unknown port=" + port:                 "AUTH",
		"host=127.0.0.1 sslmode=verify-full sslrootcert=/dev/null": "not a file with certificates",
	} {
		err := prefill(t, endpoint(t, settings))
		if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error()+e.Code, want) || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
	for want, options := range map[string]map[string]string{"own settings": {"appendonly": "yes"}, "own disks": {"disk": "/dev/sdb"}, "not a name": {"endpoint": "../x"}} {
		options["endpoint"] = "cache"
		if want == "not a name" {
			options["endpoint"] = "../x"
		}
		if _, err := (redis.Generator{}).Plan(workload(t, options)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", options, err)
		}
	}
	p, err := redis.Generator{}.Plan(workload(t, map[string]string{"endpoint": "cache", "endpoint_vcpus": "4"}))
	if err != nil || p.EndpointCPUs == nil || p.EndpointCPUs.VCPUs != 4 || p.EndpointCPUs.Threads != 2 {
		t.Errorf("CPUs of an endpoint: %+v, %v", p.EndpointCPUs, err)
	}
}
