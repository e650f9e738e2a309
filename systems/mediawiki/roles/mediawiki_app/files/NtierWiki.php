<?php
/**
 * What loading a wiki needs beside MediaWiki's own scripts: which content the database holds, and accounts for its users.
 * MediaWiki's createAndPromote.php starts PHP for each account; a thousand of them take minutes.
 */
require_once '/usr/share/mediawiki/maintenance/Maintenance.php';

use MediaWiki\Maintenance\Maintenance;

class NtierWiki extends Maintenance {
	private const PREFIX = 'ntier ';
	/** There from the beginning of a load to its end. */
	private const LOADING = 'ntier_loading';

	public function __construct() {
		parent::__construct();
		$this->addOption( 'key', 'Print what content the database holds, "loading" if a load of ours did not end, or "none"' );
		$this->addOption( 'begin', 'Note that a load begins' );
		$this->addOption( 'empty', 'Remove what a load that did not end has left, also from the cache' );
		$this->addOption( 'mark', 'Note what content it holds', false, true );
		$this->addOption( 'accounts', 'Make so many accounts, User 1 to User N', false, true );
		$this->addOption( 'password', 'Password of all these accounts', false, true );
	}

	public function execute() {
		$db = $this->getPrimaryDB();
		if ( $this->hasOption( 'accounts' ) ) {
			$this->accounts( (int)$this->getOption( 'accounts' ), $this->getOption( 'password' ) );
		} elseif ( $this->hasOption( 'mark' ) ) {
			$db->newInsertQueryBuilder()->insertInto( 'updatelog' )
				->row( [ 'ul_key' => $this->getOption( 'mark' ) ] )->caller( __METHOD__ )->execute();
			$db->query( 'DROP TABLE ' . self::LOADING, __METHOD__ );
		} elseif ( $this->hasOption( 'begin' ) ) {
			$db->query( 'CREATE TABLE ' . self::LOADING . ' (id INT)', __METHOD__ );
		} elseif ( $this->hasOption( 'empty' ) ) {
			$this->makeEmpty();
		} elseif ( $db->tableExists( self::LOADING, __METHOD__ ) ) {
			$this->output( "loading\n" );
		} elseif ( !$db->tableExists( 'updatelog', __METHOD__ ) ) {
			$this->output( "none\n" );
		} else {
			$found = $db->newSelectQueryBuilder()->select( 'ul_key' )->from( 'updatelog' )->caller( __METHOD__ )->fetchFieldValues();
			$ours = array_filter( $found, static fn ( $key ) => str_starts_with( $key, self::PREFIX ) );
			$this->output( ( reset( $ours ) ?: 'a wiki that was not loaded to its end' ) . "\n" );
		}
	}

	/** Can be repeated if it is cut short: until all is gone, the database says that a load did not end. */
	private function makeEmpty(): void {
		global $wgMemCachedServers;
		$db = $this->getPrimaryDB();
		if ( $db->getType() === 'postgres' ) { // its functions and sequences go along
			$db->startAtomic( __METHOD__ );
			$db->query( 'DROP SCHEMA public CASCADE', __METHOD__ );
			$db->query( 'CREATE SCHEMA public', __METHOD__ );
			$db->query( 'CREATE TABLE ' . self::LOADING . ' (id INT)', __METHOD__ );
			$db->endAtomic( __METHOD__ );
		} else {
			foreach ( array_diff( $db->listTables( null, __METHOD__ ), [ self::LOADING ] ) as $table ) {
				$db->query( 'DROP TABLE ' . $db->addIdentifierQuotes( $table ), __METHOD__ );
			}
		}
		foreach ( $wgMemCachedServers ?? [] as $server ) { // it holds texts by their numbers, which are given again
			$socket = stream_socket_client( "tcp://$server", $code, $why, 10 );
			if ( !$socket || fwrite( $socket, "flush_all\r\n" ) === false || trim( fgets( $socket ) ) !== 'OK' ) {
				$this->fatalError( "the cache $server cannot be emptied: $why" );
			}
		}
		$db->query( 'DROP TABLE ' . self::LOADING, __METHOD__ );
	}

	/** One hash serves all: it is the same password, and checking it takes as long. */
	private function accounts( int $count, string $password ): void {
		$services = $this->getServiceContainer();
		$hash = $services->getPasswordFactory()->newFromPlaintext( $password )->toString();
		$db = $this->getPrimaryDB();
		for ( $number = 1; $number <= $count; $number++ ) {
			$user = $services->getUserFactory()->newFromName( "User $number" );
			if ( $user->isRegistered() ) {
				continue;
			}
			if ( !$user->addToDatabase()->isOK() ) {
				$this->fatalError( "account User $number cannot be made" );
			}
			$db->newUpdateQueryBuilder()->update( 'user' )->set( [ 'user_password' => $hash ] )
				->where( [ 'user_id' => $user->getId() ] )->caller( __METHOD__ )->execute();
		}
	}
}

$maintClass = NtierWiki::class;
require_once RUN_MAINTENANCE_IF_MAIN;
