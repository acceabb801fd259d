package images

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// spdxDocument is the part of SPDX 2.3 that an SBOM of Go programs needs.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicence   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name         string         `json:"name"`
	ID           string         `json:"SPDXID"`
	Version      string         `json:"versionInfo"`
	FileName     string         `json:"packageFileName,omitempty"`
	Purpose      string         `json:"primaryPackagePurpose,omitempty"`
	Download     string         `json:"downloadLocation"`
	Analyzed     bool           `json:"filesAnalyzed"`
	Concluded    string         `json:"licenseConcluded"`
	Declared     string         `json:"licenseDeclared"`
	Copyright    string         `json:"copyrightText"`
	Checksums    []spdxChecksum `json:"checksums,omitempty"`
	ExternalRefs []spdxRef      `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	spdxNothing  = "NOASSERTION"
	spdxSelf     = "SPDXRef-DOCUMENT"
	spdxDepends  = "DEPENDS_ON"
	spdxDescribe = "DESCRIBES"
)

// inventory collects the contents of one program's images: the program for each platform,
// the modules linked into it according to the program itself, and the certificate roots.
type inventory struct {
	source  Source
	program string
	roots   string

	programs      []spdxPackage
	modules       map[string]spdxPackage // by their ID
	relationships []spdxRelationship
}

// add reads one platform's program.
func (i *inventory) add(platform v1.Platform, content []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read what %s for %s is made of: %w", i.program, platform, err)
	}
	sum := sha256.Sum256(content)
	own := spdxPackage{
		Name: i.program, ID: spdxID("Program", i.program, platform.OS, platform.Architecture),
		Version: i.source.Version, FileName: "/" + i.program, Purpose: "APPLICATION",
		Download: i.download(), Concluded: licence, Declared: licence, Copyright: spdxNothing,
		Checksums:    []spdxChecksum{{Algorithm: "SHA256", Value: hex.EncodeToString(sum[:])}},
		ExternalRefs: []spdxRef{packageURL(info.Main.Path, i.source.Version, "?goarch="+platform.Architecture+"&goos="+platform.OS)},
	}
	i.programs = append(i.programs, own)
	i.relationships = append(i.relationships, spdxRelationship{spdxSelf, spdxDescribe, own.ID})
	i.depends(own.ID, newModule("stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	for _, module := range info.Deps {
		used := effective(module)
		i.depends(own.ID, newModule(used.Path, used.Version))
	}
	i.depends(own.ID, newModule(rootsModule, i.roots))
	return nil
}

// effective is the module that was linked, which may replace the required one.
func effective(module *debug.Module) *debug.Module {
	if module.Replace != nil {
		return module.Replace
	}
	return module
}

func (i *inventory) depends(on string, module spdxPackage) {
	if i.modules == nil {
		i.modules = map[string]spdxPackage{}
	}
	i.modules[module.ID] = module
	i.relationships = append(i.relationships, spdxRelationship{on, spdxDepends, module.ID})
}

func (i *inventory) download() string {
	if i.source.Revision == "" {
		return spdxNothing
	}
	return "git+" + sourceURL + "@" + i.source.Revision
}

// document writes the SBOM. Its name includes the digests of the programs, so two documents
// of one version with different contents have different names.
func (i *inventory) document() ([]byte, error) {
	digest := sha256.New()
	for _, p := range i.programs {
		digest.Write([]byte(p.Checksums[0].Value))
	}
	name := i.program + "-" + i.source.Version
	modules := slices.SortedFunc(maps.Values(i.modules), func(a, b spdxPackage) int { return cmp.Compare(a.ID, b.ID) })
	text, err := json.MarshalIndent(spdxDocument{
		Version: "SPDX-2.3", DataLicence: "CC0-1.0", ID: spdxSelf, Name: name,
		Namespace: "https://lockstep.dev/spdx/" + url.PathEscape(name) + "/" + hex.EncodeToString(digest.Sum(nil)),
		Creation:  spdxCreation{Created: i.source.created(), Creators: []string{"Organization: Lockstep", "Tool: lockstep-release"}},
		Packages:  slices.Concat(i.programs, modules), Relationships: i.relationships,
	}, "", " ")
	return append(text, '\n'), err
}

func newModule(path, version string) spdxPackage {
	return spdxPackage{
		Name: path, ID: spdxID("Module", path, version), Version: version, Download: spdxNothing,
		Concluded: spdxNothing, Declared: spdxNothing, Copyright: spdxNothing,
		ExternalRefs: []spdxRef{packageURL(path, version, "")},
	}
}

// packageURL is the name by which scanners identify a module.
func packageURL(path, version, qualifiers string) spdxRef {
	return spdxRef{
		Category: "PACKAGE-MANAGER", Type: "purl",
		Locator: "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version) + qualifiers,
	}
}

// spdxID joins parts with the characters that an SPDX identifier may contain: letters,
// digits, dots and dashes.
func spdxID(parts ...string) string {
	return "SPDXRef-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.Join(parts, "-"))
}
