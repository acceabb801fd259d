package labtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of a control plane's directory.
const (
	caFile             = "ca.crt"
	serverCertFile     = "server.crt"
	serverKeyFile      = "server.key"
	adminCertFile      = "admin.crt"
	adminKeyFile       = "admin.key"
	serviceAccountFile = "service-account.key"
)

// serviceAddress is the address of the service "kubernetes", the first one of the range.
// Pods on a real node reach the API server at it.
const serviceAddress = "10.96.0.1"

// authority signs the certificates of one control plane.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// writeCredentials creates all keys and certificates of the control plane, and the
// administrator's kubeconfig.
func (c *Cluster) writeCredentials() error {
	files, err := credentials()
	if err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	user := fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}",
		encode(files[adminCertFile]), encode(files[adminKeyFile]))
	files["kubeconfig"] = kubeconfig(c.run.Server, files[caFile], user)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(c.run.Dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

func credentials() (map[string][]byte, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	serverCert, serverKey, err := ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceAddress)},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	// The API server uses the organisation as the user's group. This group has every permission.
	adminCert, adminKey, err := ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "lab-admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	registryCert, registryKey, err := ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: string(SecureRegistry)},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(nodeAddress)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}
	_, tokenKey, err := newKey()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		caFile:             pemBlock("CERTIFICATE", ca.certificate.Raw),
		serverCertFile:     serverCert,
		serverKeyFile:      serverKey,
		adminCertFile:      adminCert,
		adminKeyFile:       adminKey,
		registryCertFile:   registryCert,
		registryKeyFile:    registryKey,
		serviceAccountFile: tokenKey,
	}, nil
}

func newAuthority() (*authority, error) {
	key, _, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "lab"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := sign(template, &authority{certificate: template, key: key}, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return &authority{certificate: certificate, key: key}, err
}

// issue returns a certificate and its key, both PEM-encoded.
func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	raw, err := sign(template, a, private)
	return pemBlock("CERTIFICATE", raw), key, err
}

// sign completes a template and signs it. The validity begins in the past, in case the clock
// is set back.
func sign(template *x509.Certificate, by *authority, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	return x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	return key, pemBlock("EC PRIVATE KEY", raw), err
}

func pemBlock(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

// kubeconfig returns a self-contained kubeconfig, which can be copied anywhere. user is a
// YAML flow mapping.
func kubeconfig(server string, ca []byte, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: lab
  user: %s
contexts:
- name: lab
  context: {cluster: lab, user: lab}
current-context: lab
`, server, encode(ca), user)
}

func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
