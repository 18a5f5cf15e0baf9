package kubelab

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Users of the API server besides ServiceAccounts. Each has a token.
const (
	userAdmin     = "admin"
	userManager   = "system:kube-controller-manager"
	userScheduler = "system:kube-scheduler"
	userHelpers   = "kubelab" // simulated kubelets, volumes
)

// folder writes the files of a cluster. One field keeps the first error, after which nothing is written.
type folder struct {
	root string
	err  error
}

func (f *folder) dir(parts ...string) {
	if f.err == nil {
		f.err = os.MkdirAll(filepath.Join(append([]string{f.root}, parts...)...), 0o755)
	}
}

func (f *folder) file(text string, parts ...string) {
	if f.err == nil {
		f.err = os.WriteFile(filepath.Join(append([]string{f.root}, parts...)...), []byte(text), 0o600)
	}
}

// authority is the certificate authority of one cluster. It is used while the cluster is made, and not kept.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// furnish writes certificates, tokens and kubeconfigs.
func furnish(d *description) error {
	f := &folder{root: d.Dir}
	f.dir("nodes")
	a, err := newAuthority()
	if err != nil {
		return err
	}
	f.file(string(a.pem), "ca.crt")
	f.certify(a, "apiserver", pkix.Name{CommonName: "kube-apiserver"}, d.apiAddress(), d.services().Addr().Next(), netip.MustParseAddr("127.0.0.1"))
	f.certify(a, "kubelet-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}})
	f.serviceAccountKey()
	var tokens strings.Builder
	user := func(file, name, groups string) {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, name, name, groups)
		f.file(kubeconfig(d.server(), a.pem, token, ""), file+".kubeconfig")
	}
	user("admin", userAdmin, "system:masters")
	user("controller-manager", userManager, "")
	user("scheduler", userScheduler, "")
	user("helpers", userHelpers, "system:masters")
	for _, n := range d.Nodes {
		user(n.Name, "system:node:"+n.Name, "system:nodes")
	}
	f.file(tokens.String(), "tokens.csv")
	f.file(auditPolicy, "audit.yaml")
	if f.err != nil {
		return fmt.Errorf("furnish the cluster: %w", f.err)
	}
	return nil
}

const validDays = 2 // of all certificates

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubelab"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(0, 0, validDays), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// certify writes NAME.crt and NAME.key, for a server at the addresses and for a client.
func (f *folder) certify(a *authority, name string, subject pkix.Name, addresses ...netip.Addr) {
	if f.err != nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.err = err
		return
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		f.err = err
		return
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, validDays),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		f.err = err
		return
	}
	f.file(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), name+".crt")
	f.key(name+".key", key)
}

func (f *folder) key(name string, key *ecdsa.PrivateKey) {
	if f.err != nil {
		return
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		f.err = err
		return
	}
	f.file(string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), name)
}

// serviceAccountKey writes the key that signs tokens of ServiceAccounts.
func (f *folder) serviceAccountKey() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.err = errors.Join(f.err, err)
	f.key("service-accounts.key", key)
}

// kubeconfig is the text of a kubeconfig. The namespace may be empty.
func kubeconfig(server string, authority []byte, token, namespace string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: kubelab\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		server, base64.StdEncoding.EncodeToString(authority))
	fmt.Fprintf(&b, "users:\n- name: user\n  user:\n    token: %s\n", token)
	b.WriteString("contexts:\n- name: kubelab\n  context:\n    cluster: kubelab\n    user: user\n")
	if namespace != "" {
		fmt.Fprintf(&b, "    namespace: %s\n", namespace)
	}
	b.WriteString("current-context: kubelab\n")
	return b.String()
}

// auditPolicy logs the requests of ServiceAccounts of tests and of the admin, see Requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]
- level: None
  users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "kubelab"]
- level: Metadata
`
