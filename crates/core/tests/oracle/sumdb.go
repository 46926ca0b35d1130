// Computes with Go's checksum database what core computes, so that a test can compare the two.
// Input and output are JSON; log/go.rs has the other side.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type question struct {
	Leaves    []string `json:"leaves"`
	SignerKey string   `json:"signer_key"`
	Verifier  string   `json:"verifier"`
	Text      string   `json:"text"`
	Notes     []string `json:"notes"`
}

type answer struct {
	// By size, from 1 on.
	Roots []string `json:"roots"`
	// By size and index.
	Inclusion [][][]string `json:"inclusion"`
	// By size and old size, both from 1 on.
	Consistency [][][]string `json:"consistency"`
	Signed      string       `json:"signed"`
	// Whether each note was opened.
	Opened []bool `json:"opened"`
}

type hashes []tlog.Hash

func (stored hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, index := range indexes {
		found = append(found, stored[index])
	}
	return found, nil
}

func texts(proof []tlog.Hash) []string {
	lines := []string{}
	for _, hash := range proof {
		lines = append(lines, hash.String())
	}
	return lines
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	var told answer
	var stored hashes
	for n, leaf := range asked.Leaves {
		added, err := tlog.StoredHashes(int64(n), []byte(leaf), stored)
		if err != nil {
			return err
		}
		stored = append(stored, added...)
		size := int64(n) + 1
		root, err := tlog.TreeHash(size, stored)
		if err != nil {
			return err
		}
		told.Roots = append(told.Roots, root.String())
		inclusion, consistency := [][]string{}, [][]string{}
		for index := int64(0); index < size; index++ {
			included, err := tlog.ProveRecord(size, index, stored)
			if err != nil {
				return err
			}
			inclusion = append(inclusion, texts(included))
			continued, err := tlog.ProveTree(size, index+1, stored)
			if err != nil {
				return err
			}
			consistency = append(consistency, texts(continued))
		}
		told.Inclusion = append(told.Inclusion, inclusion)
		told.Consistency = append(told.Consistency, consistency)
	}
	signer, err := note.NewSigner(asked.SignerKey)
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: asked.Text}, signer)
	if err != nil {
		return err
	}
	told.Signed = string(signed)
	verifier, err := note.NewVerifier(asked.Verifier)
	if err != nil {
		return err
	}
	for _, text := range asked.Notes {
		_, err := note.Open([]byte(text), note.VerifierList(verifier))
		told.Opened = append(told.Opened, err == nil)
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}
