package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// scheme is a registry's authentication scheme.
type scheme int

const (
	noScheme scheme = iota
	basicScheme
	bearerScheme
)

// challenge is a registry's authentication challenge.
type challenge struct {
	scheme  scheme
	realm   *url.URL // the token server
	service string
}

// readChallenge finds a supported challenge among the headers of a response.
func readChallenge(response *http.Response) (challenge, error) {
	var unknown []string
	for _, text := range response.Header.Values("WWW-Authenticate") {
		name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(name) {
		case "basic":
			return challenge{scheme: basicScheme}, nil
		case "bearer":
			parameters := readParameters(rest)
			realm, err := checkRealm(parameters["realm"], isPlain(response))
			if err == nil && len(parameters["service"]) > maxService {
				err = fmt.Errorf("the name of its token service is longer than %d bytes", maxService)
			}
			return challenge{scheme: bearerScheme, realm: realm, service: parameters["service"]}, err
		default:
			unknown = append(unknown, name)
		}
	}
	return challenge{}, fmt.Errorf("it requests credentials in an unknown scheme %q", printable(strings.Join(unknown, " ")))
}

// readParameters reads realm="…",service="…". It stops at anything it cannot parse.
func readParameters(text string) map[string]string {
	parameters := map[string]string{}
	for {
		name, rest, found := strings.Cut(strings.TrimLeft(text, " ,\t"), "=")
		if !found {
			return parameters
		}
		var value string
		if value, text, found = quoted(rest); !found {
			value, text, _ = strings.Cut(rest, ",")
		}
		parameters[strings.ToLower(strings.TrimSpace(name))] = value
	}
}

// quoted parses a quoted string from the beginning of a text.
func quoted(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			i++
			if i < len(text) {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return "", text, false
}

// isPlain reports whether a response came without TLS.
func isPlain(response *http.Response) bool {
	return response.Request != nil && response.Request.URL.Scheme == "http"
}

// checkRealm refuses token servers that a registry must not name, because the credentials are
// sent there. Plain HTTP is allowed only for a registry that itself uses it.
func checkRealm(text string, plain bool) (*url.URL, error) {
	if len(text) > maxRealm {
		return nil, fmt.Errorf("its token URL is longer than %d bytes", maxRealm)
	}
	realm, err := url.Parse(text)
	switch {
	case err != nil || realm.Host == "":
		return nil, errors.New("it doesn't name a token URL")
	case realm.Scheme != "https" && (realm.Scheme != "http" || !plain):
		return nil, fmt.Errorf("it requests the credentials over %s", printable(realm.Scheme))
	}
	if address, err := netip.ParseAddr(realm.Hostname()); err == nil && forbidden(address) {
		return nil, fmt.Errorf("it requests the credentials at %s", address)
	}
	return realm, nil
}

// forbidden reports addresses that never belong to a registry: the metadata services of clouds,
// which issue credentials to any client on this machine.
func forbidden(address netip.Addr) bool {
	return address.Unmap().IsLinkLocalUnicast() || address.WithZone("").String() == "fd00:ec2::254"
}
